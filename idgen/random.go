package idgen

// GeneratesRandomTraceIDs reports whether the low 56 bits of every trace ID
// that g makes are random, as W3C Trace Context level 2 requires of a trace
// with the random flag. They are, unless a fallback was given by
// [WithFallback]. Other SDKs query their generators for this; Go's does not
// yet, see xtraceid.WithRandomFlag.
func (g *Generator) GeneratesRandomTraceIDs() bool { return g.fallback == nil }
