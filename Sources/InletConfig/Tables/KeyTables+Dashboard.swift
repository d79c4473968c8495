package import InletCore

extension KeyTables {
    package static let dashboard: [KeySpec] = [
        KeySpec(
            "listen", .string, required: true,
            "Address and port, as in 127.0.0.1:8844. Other machines reach it only at another address, which needs a token or a password."
        ),
        KeySpec("token", .secret, "What programs send as Authorization: Bearer; may do everything."),
        KeySpec("password", .secret, "What people log in with; may do everything."),
        KeySpec("read_only_token", .secret, "As token, for those who may look and change nothing."),
        KeySpec(
            "hosts", .list(.string),
            "Names under which browsers reach it besides its address, as in inlet.example or nas.lan:8844."),
        KeySpec(
            "proxy", .boolean,
            "Whether a reverse proxy on this machine says in X-Forwarded-For whom a request comes from."),
    ]

    /// A shorter one can be guessed by whoever reaches the port.
    static let shortestDashboardSecret = 8
}
