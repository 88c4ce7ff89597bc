// Lists a tenant's users while the API refuses cursors: `node resuming.mjs URL TOKEN OLDER`, on the compiled client that
// DIST names. OLDER is a genuine cursor of a format that is not read, sent in place of some. Prints one line of JSON.

const { createClient, items, ProblemError } = await import(`${process.env.DIST}/index.js`);
const [baseUrl, token, older] = process.argv.slice(2);

/** A client that sends `older` in place of the cursors with these numbers, counted from 1. */
function outdating(...outdated) {
  let cursors = 0;
  return createClient({
    baseUrl,
    token,
    fetch: (request) => {
      const url = new URL(request.url);
      if (url.searchParams.has("cursor") && outdated.includes(++cursors)) url.searchParams.set("cursor", older);
      return fetch(new Request(url, request));
    },
  });
}

async function listed(query, resume, ...outdated) {
  const found = [];
  for await (const user of items(outdating(...outdated), "/v1/users", query, undefined, resume)) found.push(user.id);
  return found;
}

const byId = { id: (user) => user.id, key: (user) => user.id };
const byMail = { id: (user) => user.id, key: (user) => user.email };
const refused = await listed({ limit: 4 }, undefined, 2).catch((error) => error);
const printed = {
  refused: refused instanceof ProblemError && refused.code,
  ordered: await listed({ order: "ordered", limit: 4 }, byId, 1, 3),
  descending: await listed({ order: "ordered", direction: "desc", limit: 4 }, byId, 1, 3),
  prefix: await listed({ order: "ordered", prefix: "1", limit: 3 }, byId, 1),
  ties: await listed({ order: "ordered", index: "by_email", limit: 3 }, byMail, 1, 3, 5),
  inTurn: await listed({ limit: 4 }, { id: byId.id }, 2, 6),
};
console.log(JSON.stringify(printed));
