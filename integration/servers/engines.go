package servers

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// engineFile finds one fetched file by its pattern below node_modules of $TRACEFLAKE_ENGINES, or of
// .cache/engines in the repository.
func engineFile(engine, pattern, variable string) (string, error) {
	folder := cmp.Or(os.Getenv("TRACEFLAKE_ENGINES"), filepath.Join(child.Repository, ".cache/engines"))
	found, err := filepath.Glob(filepath.Join(folder, "node_modules", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("servers: %s: %w: run `make engines` (needs Node and npm), or set %s to a server's DSN",
			engine, child.ErrNotInstalled, variable)
	}
	return filepath.Abs(found[0])
}
