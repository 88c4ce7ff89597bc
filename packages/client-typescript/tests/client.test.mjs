// What the client does with answers: run by `node --test` on the compiled client, whose place DIST names.

import assert from "node:assert/strict";
import { test } from "node:test";

const { batch, count, createClient, items, pages, part, ProblemError } = await import(`${process.env.DIST}/index.js`);

const JSON_TYPE = { "Content-Type": "application/json" };
const PROBLEM_TYPE = { "Content-Type": "application/problem+json" };

function answer(status, document, headers = JSON_TYPE) {
  return () => new Response(document === undefined ? null : JSON.stringify(document), { status, headers });
}

function problem(status, code, headers = {}, more = {}) {
  const document = { type: `urn:dynashard:problem:${code}`, title: code, status, detail: "No.", code, request_id: "r" };
  return answer(status, { ...document, ...more }, { ...PROBLEM_TYPE, ...headers });
}

function lost() {
  throw new TypeError("fetch failed");
}

/** A client whose requests are answered by a plan, and what it sent and how long it paused. */
function planned(plan, token = "t") {
  const sent = [];
  const pauses = [];
  const api = createClient({
    baseUrl: "http://api.test/",
    token,
    fetch: async (request) => {
      sent.push({ method: request.method, url: request.url, headers: Object.fromEntries(request.headers), body: await request.text() });
      return plan.shift()();
    },
    retries: { sleep: async (seconds) => void pauses.push(seconds), random: () => 0.5 },
  });
  return { api, sent, pauses };
}

const user = { params: { path: { id: "ada" } } };
const body = { body: { email: "ada@example.com", display_name: "Ada" } };

test("a request carries the token, asked for each time", async () => {
  let asked = 0;
  const { api, sent } = planned([answer(200, {}), answer(200, {})], () => `token-${++asked}`);

  await api.GET("/v1/users/{id}", user);
  await api.GET("/v1/users/{id}", user);

  assert.deepEqual(sent.map((each) => each.headers.authorization), ["Bearer token-1", "Bearer token-2"]);
  assert.equal(sent[0].url, "http://api.test/v1/users/ada");
});

test("a create that got no answer is sent again with its key", async () => {
  const { api, sent, pauses } = planned([lost, answer(503, {}), answer(201, { id: "ada" })]);

  const { data } = await api.POST("/v1/users", body);

  assert.equal(data.id, "ada");
  assert.equal(new Set(sent.map((each) => each.headers["idempotency-key"])).size, 1);
  assert.deepEqual(sent.map((each) => each.body), Array(3).fill(JSON.stringify(body.body)));
  assert.deepEqual(pauses, [0.1, 0.2]);
});

test("a throttle is waited for as long as it says, and then some", async () => {
  const { api, pauses } = planned([problem(429, "throttled", { "Retry-After": "7" }), answer(200, {})]);

  await api.DELETE("/v1/users/{id}", user);

  assert.deepEqual(pauses, [7.1]);
});

test("what cannot be repeated is not", async () => {
  const guarded = { ...user, body: {}, headers: { "If-Match": '"x"' } };
  for (const ask of [(api) => api.PATCH("/v1/users/{id}", guarded), (api) => api.DELETE("/v1/users/{id}", user)]) {
    const { api, sent } = planned([answer(504, {})]);

    await assert.rejects(ask(api), (error) => error instanceof ProblemError && error.code === "engine_unavailable");

    assert.equal(sent.length, 1);
  }
});

const unknown = problem(503, "outcome_unknown", {}, { details: { revision: "r2" } });
const found = (revision) => answer(200, { id: "ada", revision }, { ...JSON_TYPE, ETag: `"${revision}"` });
const writes = [(api) => api.PUT("/v1/users/{id}", { ...user, ...body }), (api) => api.PATCH("/v1/users/{id}", { ...user, body: {} })];

test("a put or patch of unknown outcome was applied if the item stands at its revision", async () => {
  for (const write of writes) {
    const { api, sent } = planned([unknown, found("r2")]);

    const { data, response } = await write(api);

    assert.deepEqual([data.revision, response.status], ["r2", 200]);
    assert.deepEqual([sent[1].method, sent[1].url], ["GET", "http://api.test/v1/users/ada?consistent=true"]);
    assert.equal(sent[1].headers.authorization, "Bearer t");
    assert.equal(sent[1].headers["if-match"], undefined);
  }
});

test("an outcome that a read does not prove stays unknown, and nothing is written again", async () => {
  for (const read of [found("r1"), problem(404, "not_found"), lost]) {
    const { api, sent } = planned([unknown, ...Array(5).fill(read)]);

    await assert.rejects(writes[0](api), (error) => error.code === "outcome_unknown");

    assert.deepEqual(sent.filter((each) => each.method !== "GET").length, 1);
  }
});

test("a delete of unknown outcome is not read: nothing could prove it", async () => {
  const { api, sent } = planned([problem(503, "outcome_unknown")]);

  await assert.rejects(api.DELETE("/v1/users/{id}", user), (error) => error.code === "outcome_unknown");

  assert.equal(sent.length, 1);
});

test("a refusal is thrown with its code and its fields, and not sent again", async () => {
  const errors = [{ field: "email", message: "Field required", code: "missing" }];
  const { api, sent } = planned([problem(422, "validation_failed", {}, { errors })]);

  await assert.rejects(api.POST("/v1/users", body), (error) => {
    assert.deepEqual([error.code, error.status, error.errors], ["validation_failed", 422, errors]);
    return true;
  });

  assert.equal(sent.length, 1);
});

test("a refusal of the gateway is a problem too", async () => {
  const { api } = planned([answer(401, { message: "Unauthorized" })]);

  await assert.rejects(api.GET("/v1/users/{id}", user), (error) => error.code === "unauthenticated");
});

test("retries end", async () => {
  const { api, sent } = planned(Array(5).fill(answer(503, {})));

  await assert.rejects(api.GET("/v1/users/{id}", user), (error) => error.status === 503);

  assert.equal(sent.length, 5);
});

test("an item that has not changed is no refusal", async () => {
  const { api } = planned([answer(304)]);

  assert.equal((await api.GET("/v1/users/{id}", user)).response.status, 304);
});

test("some fields of an item are asked for by their names", async () => {
  const { api, sent } = planned([answer(200, { id: "ada", status: "active" })]);

  const read = await part(api, "/v1/users/{id}", { id: "a/b" }, ["id", "status"]);

  assert.deepEqual(read, { id: "ada", status: "active" });
  assert.equal(sent[0].url, "http://api.test/v1/users/a%2Fb?fields=id%2Cstatus");
});

test("an answer without an item has no data", async () => {
  const minimal = { ...user, body: {}, headers: { Prefer: "return=minimal" } };
  const { api, sent } = planned([answer(204), answer(201)]);

  const patched = await api.PATCH("/v1/users/{id}", minimal);
  const created = await api.POST("/v1/users", { ...body, headers: { Prefer: "return=minimal" } });

  assert.deepEqual([patched.data, created.data, patched.response.status, created.response.status], [undefined, undefined, 204, 201]);
  assert.deepEqual(sent.map((each) => each.headers.prefer), ["return=minimal", "return=minimal"]);
});

test("items come from page after page until the cursor is null", async () => {
  const { api, sent } = planned([
    answer(200, { items: [1, 2], cursor: "a" }),
    answer(200, { items: [], cursor: "b" }),
    answer(200, { items: [3], cursor: null }),
  ]);

  const found = [];
  for await (const item of items(api, "/v1/users", { order: "ordered", limit: 2 })) found.push(item);

  assert.deepEqual(found, [1, 2, 3]);
  const queries = sent.map((each) => new URL(each.url).search);
  assert.deepEqual(queries, ["?order=ordered&limit=2", "?order=ordered&limit=2&cursor=a", "?order=ordered&limit=2&cursor=b"]);
});

test("a listing goes on from a cursor, and asks no further than it is read", async () => {
  const { api, sent } = planned([answer(200, { items: [1, 2], cursor: "b" })]);

  for await (const page of pages(api, "/v1/users", { cursor: "a" })) {
    assert.deepEqual(page.items, [1, 2]);
    break;
  }

  assert.deepEqual(sent.map((each) => new URL(each.url).search), ["?cursor=a"]);
});

test("several values of a field are several parameters", async () => {
  const { api, sent } = planned([answer(200, { items: [], cursor: null })]);

  for await (const _ of items(api, "/v1/articles", { author: ["parth"], year: [2016, 2017] })) assert.fail();

  assert.equal(new URL(sent[0].url).search, "?author=parth&year=2016&year=2017");
});

const byId = { id: (item) => item.id, key: (item) => item.id };
const refusal = () => problem(400, "unsupported_cursor");

async function listedWith(api, query, resume) {
  const all = [];
  for await (const item of items(api, "/v1/users", query, undefined, resume)) all.push(item.id);
  return all;
}

test("an ordered listing goes on from its last key, by the order of code points", async () => {
  const [low, high] = ["\u{ffff}", "\u{1f600}"];
  const { api, sent } = planned([
    answer(200, { items: [{ id: low }, { id: high }], cursor: "a" }),
    refusal(),
    answer(200, { items: [{ id: low }, { id: high }, { id: `${high}b` }], cursor: null }),
  ]);

  assert.deepEqual(await listedWith(api, { order: "ordered" }, byId), [low, high, `${high}b`]);
  assert.equal(new URL(sent[2].url).searchParams.get("from"), high);
  assert.equal(new URL(sent[2].url).searchParams.has("cursor"), false);
});

test("after a key as long as a key may be, a listing begins again", async () => {
  const longest = "k".repeat(1024);
  const { api, sent } = planned([
    answer(200, { items: [{ id: "a" }, { id: longest }], cursor: "a" }),
    refusal(),
    answer(200, { items: [{ id: "a" }, { id: longest }, { id: "l" }], cursor: null }),
  ]);

  assert.deepEqual(await listedWith(api, { order: "ordered" }, byId), ["a", longest, "l"]);
  assert.equal(new URL(sent[2].url).search, "?order=ordered");
});

test("with distinct, a value is returned once wherever its copies are", async () => {
  const copies = { id: (item) => item.value, key: (item) => item.id };
  const { api } = planned([
    answer(200, { items: [{ id: "1", value: "a" }, { id: "2", value: "b" }], cursor: "a" }),
    refusal(),
    answer(200, { items: [{ id: "3", value: "a" }, { id: "4", value: "c" }], cursor: null }),
  ]);

  assert.deepEqual(await listedWith(api, { order: "ordered", distinct: "value" }, copies), ["1", "2", "4"]);
});

test("a listing that finds nothing new throws the refusal after five attempts in turn", async () => {
  const page = answer(200, { items: [{ id: "a" }], cursor: "a" });
  const { api, sent } = planned(Array.from({ length: 6 }, () => [page, refusal()]).flat());

  await assert.rejects(listedWith(api, {}, { id: byId.id }), (error) => error.code === "unsupported_cursor");
  assert.equal(sent.length, 12);
});

test("a refusal before the first item, another refusal, and an order without a key are thrown", async () => {
  const first = planned([refusal()]);
  await assert.rejects(listedWith(first.api, { cursor: "x" }, byId), (error) => error.code === "unsupported_cursor");

  const other = planned([answer(200, { items: [{ id: "a" }], cursor: "a" }), problem(422, "validation_failed")]);
  await assert.rejects(listedWith(other.api, {}, byId), (error) => error.code === "validation_failed");

  await assert.rejects(listedWith(planned([]).api, { order: "ordered" }, { id: byId.id }), /resume.key/);
});

test("operators are parameters, and a list of values is one that repeats", async () => {
  const { api, sent } = planned([answer(200, { items: [], cursor: null })]);
  const query = { "department[in]": ["legal", "sales, north"], "email[prefix]": "a" };

  for await (const _ of items(api, "/v1/users", query)) assert.fail();

  const asked = new URL(sent[0].url).searchParams;
  assert.deepEqual(asked.getAll("department[in]"), ["legal", "sales, north"]);
  assert.equal(asked.get("email[prefix]"), "a");
});

test("a count says whether it is exact", async () => {
  const { api, sent } = planned([answer(200, { count: 7, exact: false })]);

  assert.deepEqual(await count(api, "/v1/users", { "status[ne]": "deleted", up_to: 7 }), { count: 7, exact: false });
  const { pathname, searchParams } = new URL(sent[0].url);
  assert.equal(pathname, "/v1/users/count");
  assert.deepEqual([...searchParams], [["status[ne]", "deleted"], ["up_to", "7"]]);
});

test("a batch has an outcome for each of its requests, a hundred at a time", async () => {
  const outcomes = (number) => answer(200, { outcomes: Array.from({ length: number }, () => ({ ok: true, result: null })) });
  const { api, sent } = planned([outcomes(100), outcomes(50)]);
  const requests = Array.from({ length: 150 }, (_, id) => ({ operation: "delete", key: { id: String(id) } }));

  const done = await batch(api, "/v1/users", requests);

  assert.equal(done.length, 150);
  assert.deepEqual(sent.map((each) => JSON.parse(each.body).requests.length), [100, 50]);
});

test("a batch whose answer is lost is sent again only if it reads and creates", async () => {
  const create = { operation: "create", item: { email: "a@b.c", display_name: "A" } };
  const safe = planned([lost, answer(200, { outcomes: [{ ok: true, result: {} }] })]);
  const unsafe = planned([lost]);

  await batch(safe.api, "/v1/users", [create]);
  await assert.rejects(batch(unsafe.api, "/v1/users", [create, { operation: "delete", key: { id: "x" } }]));

  assert.equal(new Set(safe.sent.map((each) => each.headers["idempotency-key"])).size, 1);
  assert.equal(safe.sent.length, 2);
  assert.equal(unsafe.sent.length, 1);
  assert.equal(unsafe.sent[0].headers["idempotency-key"], undefined);
});

test("a key that no path can carry is refused before it reaches another item", async () => {
  const { api, sent } = planned([answer(204)]);
  for (const id of ["ada?x", "", ".", ".."]) {
    await assert.rejects(api.DELETE("/v1/users/{id}", { params: { path: { id } } }), /no path can carry/);
  }
  for (const team_id of ["..", "a/b"]) {
    const path = { team_id, schedule_id: "users", shift_id: "ada" };
    await assert.rejects(api.DELETE("/v1/shifts/{team_id}/{schedule_id}/{shift_id}", { params: { path } }), /team_id is/);
  }
  assert.equal(sent.length, 0);

  await api.DELETE("/v1/users/{id}", { params: { path: { id: "a/b" } } });
  assert.equal(sent[0].url, "http://api.test/v1/users/a%2Fb");
});
