package localserver

import (
	"context"
	"errors"
	"time"

	"hubbub/localserver/store"
)

// The store, with its failures counted. What a store says as a matter of
// course, such as that there is no such session, is no failure.

// storeMeter counts failures by call.
type storeMeter struct{ failed func(call string) }

func (m storeMeter) note(call string, err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrToken),
		errors.Is(err, context.Canceled):
	default:
		m.failed(call)
	}
	return err
}

type meteredSessions struct {
	store.Sessions
	m storeMeter
}

func (s meteredSessions) Create(ctx context.Context, rec store.Session, token string) error {
	return s.m.note("create session", s.Sessions.Create(ctx, rec, token))
}

func (s meteredSessions) Get(ctx context.Context, id string) (store.Session, error) {
	rec, err := s.Sessions.Get(ctx, id)
	return rec, s.m.note("get session", err)
}

func (s meteredSessions) Begin(ctx context.Context, id, token string, by store.Opening, at time.Time) (store.Session, error) {
	rec, err := s.Sessions.Begin(ctx, id, token, by, at)
	return rec, s.m.note("begin session", err)
}

func (s meteredSessions) Withdraw(ctx context.Context, id, attempt string) error {
	return s.m.note("withdraw session", s.Sessions.Withdraw(ctx, id, attempt))
}

func (s meteredSessions) Finish(ctx context.Context, id string, outcome store.Status, at time.Time, cause string) error {
	return s.m.note("finish session", s.Sessions.Finish(ctx, id, outcome, at, cause))
}

func (s meteredSessions) Renew(ctx context.Context, id string) error {
	return s.m.note("renew session", s.Sessions.Renew(ctx, id))
}

type meteredJournal struct {
	store.Journal
	m storeMeter
}

func (s meteredJournal) Append(ctx context.Context, session string, first int, messages [][]byte) error {
	return s.m.note("append events", s.Journal.Append(ctx, session, first, messages))
}

func (s meteredJournal) Messages(ctx context.Context, session string) ([][]byte, error) {
	messages, err := s.Journal.Messages(ctx, session)
	return messages, s.m.note("read events", err)
}

type meteredFeed struct {
	store.Feed
	m storeMeter
}

func (s meteredFeed) Since(ctx context.Context, session string, after uint64) ([][]byte, uint64, error) {
	messages, last, err := s.Feed.Since(ctx, session, after)
	return messages, last, s.m.note("follow events", err)
}

type meteredVoices struct {
	store.Voices
	m storeMeter
}

func (s meteredVoices) KeepVoices(ctx context.Context, session string, snapshot []byte) error {
	return s.m.note("keep voices", s.Voices.KeepVoices(ctx, session, snapshot))
}

func (s meteredVoices) ReadVoices(ctx context.Context, session string) ([]byte, error) {
	snapshot, err := s.Voices.ReadVoices(ctx, session)
	return snapshot, s.m.note("read voices", err)
}

type meteredMedia struct {
	store.Media
	m storeMeter
}

func (s meteredMedia) CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*store.MediaWriter, error) {
	w, err := s.Media.CreateMedia(ctx, account, name, now)
	return w, s.m.note("create media", err)
}

func (s meteredMedia) StatMedia(ctx context.Context, account, name string, now time.Time) (store.MediaInfo, error) {
	info, err := s.Media.StatMedia(ctx, account, name, now)
	return info, s.m.note("look up media", err)
}

func (s meteredMedia) OpenMedia(ctx context.Context, account, name string, now time.Time) (*store.MediaReader, error) {
	r, err := s.Media.OpenMedia(ctx, account, name, now)
	return r, s.m.note("open media", err)
}

func (s meteredMedia) SweepMedia(ctx context.Context, now time.Time) (int, error) {
	n, err := s.Media.SweepMedia(ctx, now)
	return n, s.m.note("sweep media", err)
}

type meteredCounters struct {
	store.Counters
	m storeMeter
}

func (s meteredCounters) Take(ctx context.Context, key string, now time.Time, n, limit int, window time.Duration) (store.Count, error) {
	c, err := s.Counters.Take(ctx, key, now, n, limit, window)
	return c, s.m.note("count", err)
}

type meteredPlaces struct {
	store.Places
	m storeMeter
}

func (s meteredPlaces) TakePlace(ctx context.Context, account, session string, now time.Time, limit int) (bool, error) {
	ok, err := s.Places.TakePlace(ctx, account, session, now, limit)
	return ok, s.m.note("take place", err)
}

func (s meteredPlaces) LeavePlace(ctx context.Context, account, session string) error {
	return s.m.note("leave place", s.Places.LeavePlace(ctx, account, session))
}

func (s meteredPlaces) PlacesLeft(ctx context.Context, account string, now time.Time, limit int) (bool, error) {
	ok, err := s.Places.PlacesLeft(ctx, account, now, limit)
	return ok, s.m.note("look for a place", err)
}
