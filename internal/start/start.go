// Package start lets package idgen choose where a randflake.Generator begins each second. It is not
// a public option of randflake, because only idgen's generators, whose secret is their own, may
// begin anywhere.
package start

// Draw sets where in a second's space a randflake.Generator begins when its clock reaches the
// second, instead of at the first sequence number of the first node. The place is draw() modulo
// seven eighths of the space: so at least an eighth is left before the next second is borrowed.
//
// draw is called by many goroutines at once, more than once for some seconds. If it returns random
// numbers, copies of the generator diverge when the next second begins. Draw must be called before
// the generator is used. Package randflake sets this variable.
var Draw func(generator any, draw func() uint64)
