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

var phases = [...]struct{ is, next string }{
	NotBegun:  {"not begun", "`adopt prepare`"},
	Preparing: {"not completely prepared", "`adopt prepare`, or `adopt cancel`"},
	Prepared:  {"prepared", "`adopt swap`, or `adopt cancel`"},
	Swapped: {"swapped", "`adopt finish` once the old table has expired; `adopt copy` moves its " +
		"spans; `adopt undo` goes back"},
	Finishing: {"almost finished", "`adopt finish`"},
	Finished:  {"finished", "nothing"},
}

// String returns the state of the adoption, as text.
func (p Phase) String() string { return phases[p].is }

// Next returns the operator's next step, as text.
func (p Phase) Next() string { return phases[p].next }
