// Package lookup reduces the cost of finding a trace by its ID in Tempo and Jaeger, whose APIs take
// a time. The transport that [New] returns adds the earliest time at which the trace can have
// spans, which the ID contains, and repeats the request without this time if the server found
// nothing.
//
//	client := &http.Client{Transport: transport} // or httputil.ReverseProxy.Transport
//
// Only a lower bound is added. An upper bound would cut the spans of long traces, and the answer
// would not show it. The bound is the ID's time less a slack, an hour by default, which must
// exceed twice the error of the worst clock in the fleet.
//
// A response of at most 256 bytes counts as "not found", whatever it contains, so a very small
// trace costs a second request.
//
// A lookup may miss spans that were recorded before the bound, if the server found others after it.
// So a lookup of a foreign ID whose bits happen to read as a time in the middle of its own trace
// may return only a part of the trace: for random IDs and three-hour traces, about five in a
// million. [Options.Verify] excludes foreign IDs.
//
// Facts about the servers: Tempo reads start and end in Unix seconds, only together, and excludes
// the blocks outside (tempodb includeBlock); Jaeger's v3 API reads start_time and, since v2.19,
// startTime in RFC 3339, its older API start in Unix microseconds. docs/lookup.md lists what each
// saves.
package lookup
