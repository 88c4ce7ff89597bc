/** How operations of the API answer, as the client types them. */

import type { paths } from "./schema.js";

export type Json<Body> = { content: { "application/json": Body } };
/** Of what a read may show, the whole items: a part, which only a query with `fields` gets, may be empty. */
export type Whole<T> = T extends unknown ? (object extends T ? never : T) : never;
/** Whether a read may show an item whole or in part. */
export type HasPart<R> = R extends { 200: Json<infer Body> } ? ([Body] extends [Whole<Body>] ? false : true) : false;

/**
 * An operation as it answers without `Prefer: respond-async` or `return=minimal`: never 202 or 204, unless nothing else
 * succeeds. That leaves the entity as the type of what a write returns. A read returns the whole item: `part` reads some
 * fields, with their types.
 */
export type Prompt<O> = O extends { responses: infer R }
  ? HasPart<R> extends true
    ? WholeRead<O>
    : Extract<keyof R, 200 | 201> extends never
      ? Extract<keyof R, 204> extends never
        ? O
        : Omit<O, "responses"> & { responses: Omit<R, 202> }
      : Omit<O, "responses"> & { responses: Omit<R, 202 | 204> }
  : O;
type WholeRead<O> = O extends { parameters: infer P; responses: infer R extends { 200: Json<unknown> } }
  ? Omit<O, "parameters" | "responses"> & {
      parameters: { [K in keyof P]: K extends "query" ? Omit<Exclude<P[K], undefined>, "fields"> : P[K] };
      responses: Omit<R, 200> & {
        200: Omit<R[200], "content"> & Json<Whole<R[200]["content"]["application/json"]>>;
      };
    }
  : O;
/** An operation as it answers with `Prefer: respond-async`: 202 and the record of the operation. */
export type Deferred<O> = O extends { responses: { 202: infer A } }
  ? Omit<O, "responses"> & { responses: { 202: A } }
  : undefined extends O
    ? O
    : never;

/** The operation that reads a path. */
export type Get<P extends keyof paths> = paths[P] extends { get: infer Operation } ? Operation : never;
/** What an operation answers if it succeeds. */
export type Success<T> = T extends { responses: { 200: { content: { "application/json": infer Body } } } } ? Body : never;
