//go:build ignore

package main

import _ "github.com/traceflake/traceflake/contrib/otelc"
