package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/vmclock"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and how a restored machine is detected",
		Example: "  traceflake version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, why := vmclock.System().Status()
			detection := source.String()
			if why != nil {
				detection = fmt.Sprintf("%s (%s)", source,
					strings.TrimPrefix(why.Error(), "vmclock: "))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "traceflake %s\n%s %s/%s\nvmclock: %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, detection)
			return err
		},
	}
}

// version returns the version of the module, which contains the commit of an unreleased build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
