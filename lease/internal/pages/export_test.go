package pages

// For tests of package pages_test.
type (
	Page  = page
	Block = block
	Mark  = mark
)

const (
	MaxMarks = maxMarks
	MarkFor  = markFor
)

var (
	Seal     = seal
	Open     = open
	PageName = pageName
)

// Home returns a holder's home page in the store.
func (s *Store) Home(holder string) int { return s.known.Load().home(holder) }
