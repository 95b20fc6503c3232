// Reads a dashboard by Grafana's own schema: types made from it, read strictly, and its constraints.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The reader answers a list of errors, which is not nil when it is empty.
func known(err error) error {
	var found cog.BuildErrors
	if errors.As(err, &found) && len(found) == 0 {
		return nil
	}
	return err
}

func main() {
	plugins.RegisterDefaultPlugins()
	raw, err := os.ReadFile(os.Args[1])
	var read dashboard.Dashboard
	if err == nil {
		err = known(read.UnmarshalJSONStrict(raw))
	}
	if err == nil {
		err = known(read.Validate())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("accepted: %d panels and rows\n", len(read.Panels))
}
