/**
 * A tour of the client against a running stack: `node tour.js http://127.0.0.1:8000`. Prints one line of JSON.
 *
 * It is compiled strictly by every test run, so that it also shows what the types refuse.
 */

import { batch, count, createClient, createDeferredClient, items, type ItemOf, pages, part, ProblemError } from "../src/index.js";

declare const process: { argv: string[] };
declare const console: { log(line: string): void };

const baseUrl = process.argv[2] ?? "http://127.0.0.1:8000";

async function localToken(): Promise<string> {
  const body = JSON.stringify({ tenant_id: "typescript" });
  const answer = await fetch(`${baseUrl}/local/tokens`, { method: "POST", body });
  return ((await answer.json()) as { token: string }).token;
}

async function tour(): Promise<object> {
  const token = await localToken();
  const api = createClient({ baseUrl, token });

  const ids: string[] = [];
  for (const name of ["Ada", "Grace", "Joan"]) {
    const { data } = await api.POST("/v1/users", {
      body: { email: `${name.toLowerCase()}@example.com`, display_name: name },
    });
    if (data) ids.push(data.id);
  }
  const id = ids[0] ?? "";
  const address = { params: { path: { id } } };
  const { data: read, response } = await api.GET("/v1/users/{id}", address);
  const name: string | undefined = read?.display_name;
  const { email, department } = await part(api, "/v1/users/{id}", { id }, ["email", "department"]);
  const silent = await api.PUT("/v1/users/{id}", {
    params: { ...address.params, header: { Prefer: "return=minimal" } },
    body: { email, display_name: name ?? "" },
  });
  const patched = await api.PATCH("/v1/users/{id}", {
    ...address,
    body: { display_name: "Countess" },
    headers: { "If-Match": silent.response.headers.get("ETag") ?? "" },
  });

  const listed: ItemOf<"/v1/users">[] = [];
  for await (const user of items(api, "/v1/users", { order: "ordered", limit: 2 })) listed.push(user);
  const sizes: number[] = [];
  for await (const page of pages(api, "/v1/users", { order: "ordered", limit: 2 })) sizes.push(page.items.length);

  const counted = await count(api, "/v1/users", { "email[prefix]": "ada", up_to: 100 });
  const outcomes = await batch(api, "/v1/users", [
    { operation: "get", key: { id } },
    { operation: "delete", key: { id: "nobody" } },
  ]);
  const codes = outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.error.code));

  const deferred = createDeferredClient({ baseUrl, token });
  const accepted = await deferred.PATCH("/v1/users/{id}", { ...address, body: { department: "engines" } });
  // @ts-expect-error an accepted write has no entity yet
  void accepted.data?.display_name;

  for await (const part of items(api, "/v1/users", { fields: "id", limit: 2 })) {
    // @ts-expect-error of a part, any field may be missing
    part.id.length;
    break;
  }
  // @ts-expect-error a field there is not
  void (() => part(api, "/v1/users/{id}", { id }, ["shoe_size"]));
  // @ts-expect-error a read of an item shows all of it: `part` reads some fields
  void (() => api.GET("/v1/users/{id}", { params: { path: { id }, query: { fields: "id" } } }));
  // @ts-expect-error an order there is not
  void items(api, "/v1/users", { order: "sideways" });
  // @ts-expect-error an operator that the field does not take
  void (() => count(api, "/v1/users", { "status[gte]": "active" }));
  // @ts-expect-error a request without its key
  void (() => batch(api, "/v1/users", [{ operation: "get" }]));
  // @ts-expect-error a path that is no listing
  void items(api, "/v1/users/{id}");
  // @ts-expect-error a field there is not
  void read?.shoe_size;

  const refusals: Record<string, string> = {};
  for (const [what, ask] of Object.entries({
    missing: () => api.GET("/v1/users/{id}", { params: { path: { id: "nobody" } } }),
    stale: () => api.DELETE("/v1/users/{id}", { ...address, headers: { "If-Match": '"stale"' } }),
    invalid: () => api.POST("/v1/users", { body: { email: "nobody", display_name: "" } }),
    stranger: () => createClient({ baseUrl, token: "forged" }).GET("/v1/users"),
  })) {
    try {
      await ask();
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      refusals[what] = [error.code, ...error.errors.map((each) => each.field).sort()].join(" ");
    }
  }
  for (const each of ids) await api.DELETE("/v1/users/{id}", { params: { path: { id: each } } });
  return {
    read: name,
    part: [email, department],
    silent: [silent.response.status, silent.data === undefined, silent.response.headers.get("Preference-Applied")],
    fresh: response.headers.get("ETag") !== silent.response.headers.get("ETag"),
    patched: patched.data?.display_name,
    listed: listed.map((user) => user.id).filter((each) => ids.includes(each)).length,
    sizes,
    counted: [counted.count >= 1, counted.exact],
    codes,
    accepted: accepted.response.status === 202 && typeof accepted.data?.state,
    refusals,
  };
}

console.log(JSON.stringify(await tour()));
