/** Parts of single items: some fields, with their types. */

import type { Client } from "./client.js";
import type { Get, HasPart, Success, Whole } from "./operations.js";
import type { paths } from "./schema.js";

/** The paths of single items that can be read. */
export type ItemPath = {
  [P in keyof paths]: Get<P> extends { responses: infer R } ? (HasPart<R> extends true ? P : never) : never;
}[keyof paths];
/** A single item, as a whole. */
export type ItemAt<P extends ItemPath> = Whole<Success<Get<P>>>;
/** The values in the path of a single item. */
export type AddressOf<P extends ItemPath> = paths[P] extends { parameters: { path: infer Address } } ? Address : never;

/** Some fields of a single item: `part(api, "/v1/users/{id}", { id }, ["status"])`. */
export async function part<P extends ItemPath, F extends keyof ItemAt<P> & string>(
  client: Client,
  path: P,
  address: AddressOf<P>,
  fields: readonly F[],
  signal?: AbortSignal,
): Promise<Pick<ItemAt<P>, F>> {
  const params = { path: address, query: { fields: fields.join(",") } };
  const { data } = await (client.GET as unknown as GetPart)(path, { params, signal });
  return data as Pick<ItemAt<P>, F>;
}

type GetPart = (path: string, init: object) => Promise<{ data?: unknown }>;
