/**
 * Returns the trace ID of a time and a key under a secret, 32 hex digits: the same ID each time.
 * Only those who have the secret can derive it. Never send a secret to a browser.
 */
export declare function deriveTraceId(
  secret: string,
  unixMillis: number,
  key: string,
): Promise<string>;

/** Returns the span ID of a time and a key under a secret. It reveals nothing about the trace ID. */
export declare function deriveSpanId(
  secret: string,
  unixMillis: number,
  key: string,
): Promise<string>;
