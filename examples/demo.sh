#!/usr/bin/env bash
# Starts the two services of examples/otelhttp, with leases from a temporary directory unless
# TRACEFLAKE_STORE is set, sends a request, and shows what is in the trace ID of the response. If
# TRACEFLAKE_CLICKHOUSE_DSN is set, and OTEL_TRACES_EXPORTER=otlp sends to a Collector that writes
# there, it also finds the trace.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
pids=()
stop() { # in the reverse order, after the last spans were sent
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill "${pids[i]}" 2>/dev/null && wait "${pids[i]}" || true
	done
	pids=()
}
trap 'stop; rm -rf "$tmp"' EXIT

go build -o "$tmp" ./examples/otelhttp ./cmd/traceflake
export TRACEFLAKE_STORE=${TRACEFLAKE_STORE:-file:$tmp/leases}

serve() { # serve NAME: starts a service and sets its address
	"$tmp/otelhttp" "$1" 127.0.0.1:0 >/dev/null 2>"$tmp/$1.log" &
	pids+=($!)
	address=
	until [[ $address ]]; do
		kill -0 $! || { cat "$tmp/$1.log"; exit 1; }
		sleep 0.1
		address=$(sed -n "s/^$1 serves //p" "$tmp/$1.log")
	done
}
serve orders
export ORDERS_URL=$address
serve shop
id=$(curl -si "$address/checkout" | tr -d '\r' | sed -n 's/^X-Trace-Id: //p')
stop

printf '$ curl -i http://shop/checkout\nx-trace-id: %s\n\n$ traceflake inspect %s\n' "$id" "$id"
"$tmp/traceflake" inspect --verify "$id"
if [[ ${TRACEFLAKE_CLICKHOUSE_DSN:-} ]]; then
	printf '\n$ traceflake trace %s\n' "$id"
	"$tmp/traceflake" trace "$id"
fi
