package clickhouse

// Phase is the progress of an [Adoption], as observed on a server.
type Phase int

// The phases of an adoption, in their order.
const (
	NotBegun  Phase = iota // the old table alone
	Preparing              // the new table or a view is missing: prepare or cancel was interrupted
	Prepared               // the old table has the name, and the new one is alongside
	Swapped                // the new table has the name, and the old one is alongside
	Finishing              // the old table is dropped, but not the views: finish was interrupted
	Finished               // the new table alone
)

// phases has the names of the phases, the next steps, and the commands that fill the lookup table.
var phases = [...]struct{ is, next, fill string }{
	NotBegun: {"not begun", "`adopt prepare`", "adopt prepare"},
	Preparing: {"not completely prepared", "`adopt prepare`, or `adopt cancel`",
		"adopt prepare"},
	Prepared: {"prepared", "`adopt swap`, or `adopt cancel`", "adopt prepare"},
	Swapped: {"swapped", "`adopt finish` once the old table has expired; `adopt copy` moves its " +
		"spans; `adopt undo` goes back", "adopt prepare"},
	Finishing: {"almost finished", "`adopt finish`", "create"},
	Finished:  {"finished", "nothing", "create"},
}

// String returns the state of the adoption, as text.
func (p Phase) String() string { return phases[p].is }

// Next returns the operator's next step, as text.
func (p Phase) Next() string { return phases[p].next }
