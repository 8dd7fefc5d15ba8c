package localserver

const victimDir = "HUBBUB_SERVER_VICTIM"

func victim(string) {}
