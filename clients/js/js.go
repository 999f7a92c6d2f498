// Package js holds the JavaScript client, for services that serve it to browsers themselves.
// README.md beside this file describes the client.
package js

import _ "embed"

// Source is the client: an ES module that imports nothing.
//
//go:embed traceflake.js
var Source string
