// Package cmd runs the command line against real stores.
package cmd
