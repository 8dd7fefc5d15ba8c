package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// parameter is the parameter of that name. params points to clustering.Params or
// offline.Params; case is ignored.
func parameter(params any, name string) (reflect.Value, error) {
	field := reflect.ValueOf(params).Elem().FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() {
		return field, usagef("names may be in any case", "no parameter %q; there are %s", name, strings.Join(parameterNames(params), ", "))
	}
	return field, nil
}

// parameterNames lists the parameters in alphabetical order.
func parameterNames(params any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(params).Elem()) {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// setParam changes the parameter of NAME=NUMBER.
func setParam(params any, text string) error {
	name, value, ok := strings.Cut(text, "=")
	v, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil {
		return usagef("give NAME=NUMBER", "%q sets nothing", text)
	}
	field, err := parameter(params, name)
	if err == nil {
		field.SetFloat(v)
	}
	return err
}
