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

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + ", commit " + s.Value
		}
	}
	return info.Main.Version
}
