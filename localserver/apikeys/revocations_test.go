package apikeys

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// recordOf returns the only record of an account.
func recordOf(t *testing.T, dir, account string) Record {
	t.Helper()
	records := testkit.Must(List(dir, time.Now()))(t)
	for _, r := range records {
		if r.Account == account {
			return r
		}
	}
	t.Fatalf("no key of %s in %+v", account, records)
	return Record{}
}

// joined is a keyring of a data folder on a shared store.
func joined(t *testing.T, dir string, s SharedKeys) *Keyring {
	t.Helper()
	k := ringOf(dir, time.Now)
	testkit.NoError(t, k.Join(t.Context(), s))
	return k
}

func refresh(t *testing.T, rings ...*Keyring) {
	t.Helper()
	for _, k := range rings {
		testkit.NoError(t, k.Refresh(t.Context()))
	}
}

// A key is revoked alone, by its ID or as a whole, also after a restart.
func TestRevokeOneKey(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	one, two, other := mustCreate(t, dir, "one", PlanPro, now),
		mustCreate(t, dir, "two", PlanNone, now), mustCreate(t, dir, "other", PlanPro, now)
	k := ringOf(dir, time.Now)
	r := recordOf(t, dir, "one")
	if r.State(now) != "valid" || r.State(now.Add(2*time.Hour)) != "expired" || r.Plan != PlanPro || r.SigningKey == "" ||
		r.Expires.Sub(*r.Created) != time.Hour {
		t.Errorf("%+v", r)
	}
	if _, known, err := Revoke(dir, r.ID, now); err != nil || !known {
		t.Errorf("by its ID: %v %v", known, err)
	}
	if got, known, err := Revoke(dir, two, now); err != nil || !known || got.Account != "two" {
		t.Errorf("as a whole: %+v %v %v", got, known, err)
	}
	refresh(t, k)
	for name, k := range map[string]*Keyring{"running": k, "restarted": ringOf(dir, time.Now)} {
		if accepts(k, one) || accepts(k, two) || !accepts(k, other) || !accepts(k, staticKey) {
			t.Errorf("%s: a revoked key is accepted, or another one refused", name)
		}
	}
	if r := recordOf(t, dir, "one"); r.State(now) != "revoked" {
		t.Errorf("%+v", r)
	}
	// IDs that are not from here, such as those of keys signed elsewhere.
	long := "urn:elsewhere/" + strings.Repeat("x", 10_000)
	for _, id := range []string{"urn:elsewhere/1", long} {
		if r, known, err := Revoke(dir, id, now); err != nil || known || r.ID != id {
			t.Errorf("%+v %v %v", r, known, err)
		}
	}
	refresh(t, k)
	if !k.Revoked("urn:elsewhere/1") || !k.Revoked(long) || k.Revoked("urn:elsewhere/2") || k.Revoked("") {
		t.Error("wrong IDs are revoked")
	}
	for _, bad := range []string{"", strings.Repeat("x", maxID+1), two[:len(two)/2]} { // a part of a key, which would stay valid
		if _, _, err := Revoke(dir, bad, now); err == nil {
			t.Errorf("%q can be revoked", bad)
		}
	}
}

// A record that is damaged withholds its key: it may have been revoked.
func TestDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	key, other := mustCreate(t, dir, "a", PlanPro, time.Now()), mustCreate(t, dir, "b", PlanPro, time.Now())
	file := filepath.Join(dir, recordFolder, recordName(recordOf(t, dir, "a").ID)+recordSuffix)
	second := recordOf(t, dir, "b").ID
	good := testkit.Must(os.ReadFile(file))(t)
	testkit.NoError(t, os.WriteFile(file, []byte("junk"), 0o600))
	k := ringOf(dir, time.Now)
	if accepts(k, key) || !accepts(k, other) {
		t.Error("the key of a damaged record is accepted, or another one refused")
	}
	if _, err := List(dir, time.Now()); err == nil {
		t.Error("a damaged record is not reported")
	}
	// Another key is revoked all the same.
	if r, known, err := Revoke(dir, second, time.Now()); err != nil || !known || r.Account != "b" || accepts(ringOf(dir, time.Now), other) {
		t.Errorf("revoked %+v, known %v: %v", r, known, err)
	}
	// It is reported until the file is repaired, which does not change its folder.
	old := time.Now().Add(-time.Hour)
	testkit.NoError(t, os.Chtimes(filepath.Join(dir, recordFolder), old, old))
	for range 2 {
		if err := k.Refresh(t.Context()); err == nil {
			t.Error("a refresh does not report the damaged record")
		}
	}
	testkit.NoError(t, os.WriteFile(file, good, 0o600))
	if err := k.Refresh(t.Context()); err != nil || !accepts(k, key) {
		t.Errorf("the key of a repaired record is not accepted: %v", err)
	}
}

// A server that cannot know what was revoked does not start: it would accept revoked keys.
func TestUnreadableRecords(t *testing.T) {
	dir := t.TempDir()
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, recordFolder), nil, 0o600))
	if _, err := NewKeyring(nil, dir, time.Now, slog.New(slog.DiscardHandler)); err == nil || hint.Of(err) == "" {
		t.Errorf("%v, what to do: %q", err, hint.Of(err))
	}
}

// Records are deleted long after their keys have expired.
func TestRecordsArePruned(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	mustCreate(t, dir, "old", PlanPro, now.Add(-keptRecord-2*time.Hour))
	mustCreate(t, dir, "new", PlanPro, now)
	if all := testkit.Files(t, filepath.Join(dir, recordFolder), "*"); len(all) != 1 {
		t.Errorf("%v", all)
	}
	if all, err := List(dir, now); err != nil || len(all) != 1 || all[0].Account != "new" {
		t.Errorf("%+v %v", all, err)
	}
}

// A key is listed until long after it has expired, also a revoked one, whose record remains.
func TestListedKeys(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	key := mustCreate(t, dir, "a", PlanPro, now)
	_, _, err := Revoke(dir, key, now)
	testkit.NoError(t, err)
	_, _, err = Revoke(dir, "elsewhere", now)
	testkit.NoError(t, err)
	for at, want := range map[time.Duration]int{keptRecord: 2, keptRecord + 2*time.Hour: 1} { // when the other one expires is not known
		if all, err := List(dir, now.Add(at)); err != nil || len(all) != want {
			t.Errorf("after %v: %+v %v", at, all, err)
		}
	}
	mustCreate(t, dir, "b", PlanPro, now.Add(keptRecord+2*time.Hour)) // as of a clock that is ahead, and set back then
	if accepts(ringOf(dir, time.Now), key) {
		t.Error("a revoked key is accepted")
	}
}

// On a cluster a key is refused by all nodes, wherever it was signed and
// revoked, also by nodes that start later, and while the store does not respond.
func TestNodesExchangeRevocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sharedKeys{}
		dirA, dirB := t.TempDir(), t.TempDir()
		key := mustCreate(t, dirA, "a", PlanPro, time.Now())
		a, b, none := joined(t, dirA, s), joined(t, dirB, s), joined(t, "", s)
		long := strings.Repeat("<", maxID) // six times as long in JSON
		for _, revoked := range []string{key, long} {
			if _, known, err := Revoke(dirB, revoked, time.Now()); err != nil || known {
				t.Fatal(known, err)
			}
		}
		refresh(t, b, a, none)
		late := joined(t, "", s)
		s.failing = true
		if err := a.Refresh(t.Context()); !errors.Is(err, errStore) {
			t.Errorf("without the store: %v", err)
		}
		for name, k := range map[string]*Keyring{"where it was signed": a, "where it was revoked": b, "without a folder": none, "started later": late} {
			if accepts(k, key) || !k.Revoked(long) {
				t.Errorf("%s: a revoked key is accepted", name)
			}
		}
		s.failing = false
		// Each is published once, and withdrawn long after the key has expired, if that is known.
		published := func() (n int) {
			for _, p := range s.keys {
				if p.Origin == revokedOrigin {
					n++
				}
			}
			return n
		}
		refresh(t, b, b)
		if published() != 2 {
			t.Errorf("published %d times: %+v", published(), s.keys)
		}
		time.Sleep(keptRecord + 2*time.Hour)
		refresh(t, b, b)
		testkit.Equal(t, published(), 1, "published after it expired", s.keys)
	})
}
