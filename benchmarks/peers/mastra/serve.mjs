// Mastra's Memory behind lines of JSON on stdin and stdout. Every line names a method and brings
// the vectors of the texts in it, so that no model is needed.
import { createInterface } from "node:readline";
import { Memory } from "@mastra/memory";
import { LibSQLStore, LibSQLVector } from "@mastra/libsql";

const folder = process.argv[2];
const vectors = new Map();
let dimensions = 0;
const embedder = {
  specificationVersion: "v2",
  provider: "bench",
  modelId: "given",
  maxEmbeddingsPerCall: 1000,
  supportsParallelCalls: true,
  doEmbed: async ({ values }) => ({
    // It asks for the vector of "a" to learn the dimensions.
    embeddings: values.map((value) => vectors.get(value) ?? new Array(dimensions).fill(0.1)),
    usage: { tokens: 0 },
  }),
};
const memory = new Memory({
  storage: new LibSQLStore({ id: "store", url: `file:${folder}/store.db` }),
  vector: new LibSQLVector({ id: "vector", url: `file:${folder}/vector.db` }),
  embedder,
  options: {
    lastMessages: 0,
    semanticRecall: { topK: 4, messageRange: { before: 1, after: 1 }, scope: "resource" },
  },
});
const threads = new Set();

async function remember({ messages }) {
  for (const { threadId, resourceId } of messages) {
    if (threads.has(threadId)) continue;
    threads.add(threadId);
    await memory.createThread({ threadId, resourceId, title: threadId });
  }
  await memory.saveMessages({
    messages: messages.map(({ id, role, text, createdAt, threadId, resourceId }) => ({
      id,
      role,
      threadId,
      resourceId,
      createdAt: new Date(createdAt),
      content: { format: 2, parts: [{ type: "text", text }], content: text },
    })),
  });
  return {};
}

async function recall({ query, k, neighbours, threadId, resourceId, scope }) {
  const { messages } = await memory.recall({
    threadId,
    resourceId,
    perPage: 0,
    vectorSearchString: query,
    threadConfig: {
      semanticRecall: {
        topK: k,
        messageRange: { before: neighbours, after: neighbours },
        scope,
      },
    },
  });
  return {
    found: messages.map(({ id, content }) => ({
      id,
      text: typeof content === "string" ? content : (content.content ?? content.parts?.[0]?.text),
    })),
  };
}

const methods = { remember, recall };
for await (const line of createInterface({ input: process.stdin })) {
  const { method, given, ...rest } = JSON.parse(line);
  vectors.clear();
  for (const [text, vector] of Object.entries(given)) {
    vectors.set(text, vector);
    dimensions = vector.length;
  }
  let answer;
  try {
    answer = await methods[method](rest);
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
