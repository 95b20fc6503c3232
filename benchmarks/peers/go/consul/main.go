// Command consul runs an unchanged Consul agent from its published module.
//
// The module's own main package can't be a dependency, so this is that package without its shell
// completion.
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	mcli "github.com/mitchellh/cli"

	"github.com/hashicorp/consul/command"
	"github.com/hashicorp/consul/command/cli"
)

func main() {
	log.SetOutput(io.Discard)
	ui := &cli.BasicUI{BasicUi: mcli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}}
	program := &mcli.CLI{Name: "consul", Args: os.Args[1:], Commands: command.RegisteredCommands(ui)}
	code, err := program.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}
