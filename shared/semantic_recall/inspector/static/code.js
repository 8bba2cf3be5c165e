// The call that does in Python what the form does here.

// A JSON string is a Python string, with the same escapes.
const quoted = (text) => JSON.stringify(text);

/** Return Python code: only the options that differ from those of the memory. */
export function asCode(fields, defaults) {
  const given = [quoted(fields.query)];
  if (fields.resource_id !== null) given.push(`resource_id=${quoted(fields.resource_id)}`);
  if (fields.thread_id !== null) given.push(`thread_id=${quoted(fields.thread_id)}`);
  if (fields.scope !== "resource") given.push(`scope=${quoted(fields.scope)}`);
  const differs = (name) => fields[name] !== defaults[name];
  if (differs("top_k")) given.push(`top_k=${fields.top_k}`);
  if (differs("before") || differs("after")) {
    given.push(`message_range=(${fields.before}, ${fields.after})`);
  }
  for (const name of ["threshold", "max_tokens"]) {
    if (differs(name)) given.push(`${name}=${fields[name] ?? "None"}`);
  }
  if (differs("ranking")) given.push(`ranking=${quoted(fields.ranking)}`);
  return `memory.recall(\n${given.map((argument) => `    ${argument},\n`).join("")})`;
}
