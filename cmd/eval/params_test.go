package main

import (
	"reflect"
	"strings"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol/testkit"
)

// Each parameter can be set by its name, and changes alone.
func TestSetParams(t *testing.T) {
	for _, params := range []any{&clustering.Params{}, &offline.Params{}} {
		v := reflect.ValueOf(params).Elem()
		names := parameterNames(params)
		if len(names) != v.NumField() {
			t.Errorf("%T: %d names of %d fields", params, len(names), v.NumField())
		}
		for _, name := range names {
			v.SetZero()
			testkit.NoError(t, setParam(params, strings.ToLower(name)+"=0.25"))
			for _, other := range names {
				if got := v.FieldByName(other).Float(); (got == 0.25) != (other == name) {
					t.Errorf("%T: after %s was set, %s is %v", params, name, other, got)
				}
			}
		}
		for text, want := range map[string]string{"volume=1": `"volume"; there are ` + names[0], "volume": "sets nothing", names[0] + "=x": "sets nothing"} {
			if err := setParam(params, text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%T: %s: %v", params, text, err)
			}
		}
	}
}
