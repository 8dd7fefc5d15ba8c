package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol"
	"hubbub/protocol/client"
)

// maxPage is the most jobs of one request.
const maxPage = 100

func newJobs(a *App) *cobra.Command {
	cmd := newJobList(a, "jobs", "List, show and cancel the jobs on whole recordings of a service")
	cmd.Long = `List the jobs of the account, newest first, with their progress. The service keeps
a job for 24 hours after its end.`
	cmd.Example = `  hubbub jobs --server https://diarization.example
  hubbub jobs --status running
  hubbub jobs show 01a208b2-62e9-7659-8e1c-cc2bcd877005
  hubbub jobs cancel 01a208b2-62e9-7659-8e1c-cc2bcd877005`
	cmd.AddCommand(newJobList(a, "list", "List the jobs, as 'hubbub jobs' alone does"),
		newJob(a, "show", "Print the status and the output of a job as JSON", (*client.Client).Job),
		newJob(a, "cancel", "Cancel a job that is not over", (*client.Client).CancelJob))
	return cmd
}

func newJobList(a *App, name, short string) *cobra.Command {
	var service serviceFlags
	var output choice
	status := choice{"", protocol.JobStates()}
	limit := newCount(20, 100_000)
	cmd := &cobra.Command{
		Use: name, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withJobs(cmd, &service, func(ctx context.Context, c *serviceClient) error {
				return a.listJobs(ctx, c, client.JobFilter{Status: status.value}, limit.value, output.value)
			})
		},
	}
	flags := cmd.Flags()
	service.addRemote(cmd)
	status.add(cmd, "status", "", "only jobs with the status `NAME`")
	flags.Var(&limit, "limit", "at most `N` jobs")
	addOutput(cmd, &output)
	return cmd
}

// newJob is a command that takes the ID of a job and prints its status.
func newJob(a *App, name, short string, do func(*client.Client, context.Context, string) (protocol.JobStatus, error)) *cobra.Command {
	var service serviceFlags
	cmd := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  neededArgs("'hubbub jobs' lists them.", "the ID of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withJobs(cmd, &service, func(ctx context.Context, c *serviceClient) error {
				job, err := do(c.Client, ctx, args[0])
				if err != nil {
					return err
				}
				return protocol.WriteJSON(a.Stdout, job)
			})
		},
	}
	service.addRemote(cmd)
	return cmd
}

// withJobs connects to the service, which has to be a remote one.
func (a *App) withJobs(cmd *cobra.Command, service *serviceFlags, do func(context.Context, *serviceClient) error) error {
	if err := service.completeFromSettings(cmd); err != nil {
		return err
	}
	if service.server == "" {
		return usage.Error("hubbub jobs needs a service", "Give its address with --server, or in HUBBUB_SERVER. Without a service, use 'hubbub diarize'.")
	}
	c, err := a.connect(cmd.Context(), *service, connectOptions{waiting: a.noticeWait})
	if err != nil {
		return err
	}
	return cmp.Or(do(cmd.Context(), c), c.close())
}

func (a *App) listJobs(ctx context.Context, c *serviceClient, f client.JobFilter, limit int, format string) error {
	var all []protocol.JobItem
	for {
		f.Limit = min(limit-len(all), maxPage)
		page, err := c.Jobs(ctx, f)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil || len(page.Items) == 0 || len(all) >= limit {
			break
		}
		f.Cursor = *page.NextCursor
	}
	return printList(a.Stdout, format, "ID\tKIND\tSTATUS\tPROGRESS\tCREATED", all, func(j protocol.JobItem) string {
		progress := "-"
		if j.Progress != nil && j.Status != protocol.JobCreated {
			progress = fmt.Sprintf("%.0f %%", *j.Progress*100)
		}
		clean := func(s string) string { return cmp.Or(protocol.Clean(s, 64), "-") }
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", clean(j.ID), clean(j.Kind), clean(j.Status), progress, clean(j.CreatedAt))
	})
}
