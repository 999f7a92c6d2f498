/**
 * Time-ordered trace IDs for OpenTelemetry. The format and its limits: <a
 * href="https://github.com/traceflake/traceflake/blob/main/docs/format.md">docs/format.md</a>.
 */
package io.github.traceflake.otel;
