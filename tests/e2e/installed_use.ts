// A program that has the packed client installed: `node use.js URL TOKEN` prints one line of JSON.

import { createClient, items, part, ProblemError, type Schemas } from "dynashard-client";

declare const process: { argv: string[] };
declare const console: { log(line: string): void };

const [, , baseUrl = "", token = ""] = process.argv;
const api = createClient({ baseUrl, token });

const { data: created } = await api.POST("/v1/users", { body: { email: "ada@example.com", display_name: "Ada" } });
if (created === undefined) throw new Error("a create returns the item");
const path = { id: created.id };
const { data: patched } = await api.PATCH("/v1/users/{id}", { params: { path }, body: { department: "engines" } });
const listed: Schemas["User"][] = [];
for await (const user of items(api, "/v1/users", { order: "ordered" })) listed.push(user);
const { department } = await part(api, "/v1/users/{id}", path, ["department"]);
const refused = await api.GET("/v1/users/{id}", { params: { path: { id: "nobody" } } }).catch((error: unknown) => error);

// @ts-expect-error the types of the package know the fields
void patched?.shoe_size;

console.log(
  JSON.stringify({
    created: created.display_name,
    patched: patched?.department,
    listed: listed.map((user) => user.id === created.id),
    department,
    refused: refused instanceof ProblemError && refused.code,
  }),
);
