/** Counts: how many items a query chooses, up to a bound. */

import type { Client } from "./client.js";
import type { Get } from "./operations.js";
import type { components, paths } from "./schema.js";

/** The resources that can be counted, such as `/v1/users`. */
export type Counted = {
  [P in keyof paths]: P extends `${infer Root}/count` ? (Root extends keyof paths ? Root : never) : never;
}[keyof paths];
/** The parameters of a count: those of a listing that choose items, and `up_to`. */
export type CountQuery<P extends Counted> =
  Get<`${P}/count` & keyof paths> extends { parameters: { query?: infer Query } } ? Query : never;

type Get200 = (path: string, init: object) => Promise<{ data?: components["schemas"]["Count"] }>;

/** How many items there are: `count(api, "/v1/users", { "status[ne]": "deleted", up_to: 1000 })`. */
export async function count<P extends Counted>(
  client: Client,
  path: P,
  query?: CountQuery<P>,
  signal?: AbortSignal,
): Promise<components["schemas"]["Count"]> {
  const params = { query: { ...(query as object | undefined) } };
  const { data } = await (client.GET as unknown as Get200)(`${path}/count`, { params, signal });
  return data as components["schemas"]["Count"];
}
