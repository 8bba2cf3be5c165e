// Asks the server. The token is in the page's address and goes with every call as a header, which
// no page of another origin can send.

const token = location.pathname.split("/").at(-2);

/** Return what an endpoint answers; throws an Error that says what went wrong. */
export async function ask(name, fields = {}, signal = undefined) {
  let answer;
  try {
    answer = await fetch(`../api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-inspector-token": token },
      body: JSON.stringify(fields),
      credentials: "omit",
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The inspector does not answer. Is `semantic-recall inspect` still running?");
  }
  const document = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const said = document.error ?? `The server failed (${answer.status}).`;
    throw Object.assign(new Error(said), { status: answer.status });
  }
  return document;
}
