// Uses the types that openapi-typescript generates, with openapi-fetch alone: `node generated_use.js URL TOKEN` prints
// one line of JSON.

import createClient from "openapi-fetch";

import type { paths } from "./generated.js";

declare const process: { argv: string[] };
declare const console: { log(line: string): void };

const [, , baseUrl = "", token = ""] = process.argv;
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

const created = await api.POST("/v1/users", { body: { email: "ada@example.com", display_name: "Ada" } });
if (created.data === undefined || !("id" in created.data)) throw new Error(JSON.stringify(created.error));
const { id, display_name } = created.data as { id: string; display_name: string };
const address = { params: { path: { id } } };
const { data: page } = await api.GET("/v1/users");
const { data: patched } = await api.PATCH("/v1/users/{id}", { ...address, body: { department: "engines" } });
const { data: part } = await api.GET("/v1/users/{id}", { params: { ...address.params, query: { fields: "department" } } });
const { error } = await api.GET("/v1/users/{id}", { params: { path: { id: "nobody" } } });

console.log(
  JSON.stringify({
    created: display_name,
    listed: page?.items.map((user) => user.id === id),
    patched: patched && "department" in patched && patched.department,
    part,
    refused: error && "code" in error && error.code,
  }),
);
