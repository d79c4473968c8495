internal import CPostgres
package import InletCore

/// Where PostgreSQL is, and as whom: a URL or key=value string of libpq, with what the environment adds, checked.
package struct PostgresAddress: Sendable, Equatable, CustomStringConvertible {
    /// One server to try.
    struct Server: Sendable, Equatable {
        /// A name, an address, or the folder of a socket; nil is libpq's default, a socket.
        var name: String?
        /// Where `hostaddr` gives it.
        var address: String?
        var port: String

        /// Whether only this machine can be at the other end.
        var isLocal: Bool {
            guard let place = address ?? name else { return true }
            return isSocket || IPAddress(place)?.isLoopback == true || place.lowercased() == "localhost"
        }

        var isSocket: Bool {
            guard let place = address ?? name else { return true }
            return place.hasPrefix("/")
        }

        var display: String {
            let place = DisplayText.escape((name ?? address ?? "the local socket").utf8)
            return isSocket ? place : place.contains(":") ? "[\(place)]:\(port)" : "\(place):\(port)"
        }
    }

    /// Servers with ports, or the socket; no password.
    package var display: String { servers.map(\.display).joined(separator: ", ") }
    package var description: String { display }
    package let user: String?
    package let database: String?
    let servers: [Server]
    /// All of libpq's options but those of `servers`.
    let options: [String: Secret]

    /// Options for libpq unless the text says otherwise. Nothing may wait for a server that is gone, or for Kerberos.
    private static let defaults = [
        "connect_timeout": "5", "keepalives": "1", "keepalives_idle": "10", "keepalives_interval": "5",
        "keepalives_count": "3", "tcp_user_timeout": "10000", "gssencmode": "disable",
    ]

    package init(_ text: String, allowsUnverified: Bool) throws(FleetError) {
        let pq = try PostgresLibrary.functions()
        let given = try Self.parsed(text, pq)
        var options = Self.environment(pq).merging(Self.defaults) { $1 }.merging(given) { $1 }
        servers = try Self.servers(options)
        // A password with signs that a URL cannot hold: the rest of it would be shown as a host, a port or a database.
        let isWhole = servers.allSatisfy { $0.name?.contains("@") != true && UInt16($0.port) != nil }
        guard isWhole, options["dbname"]?.contains("@") != true else { throw Self.unreadable }
        if servers.count > 1, given["target_session_attrs"] == nil { options["target_session_attrs"] = "read-write" }
        for option in ["host", "hostaddr", "port", "service"] { options[option] = nil }
        (user, database) = (options["user"], options["dbname"] ?? options["user"])
        self.options = options.mapValues { Secret($0) }
        let mode = options["sslmode"] ?? "prefer"
        guard !allowsUnverified, mode != "verify-full", let other = servers.first(where: { !$0.isLocal }) else {
            return
        }
        throw FleetError(
            .untrusted,
            "sslmode=\(DisplayText.escape(mode.utf8)) does not prove that \(other.display) is your server; "
                + "write sslmode=verify-full in the fleet's url, or set fleet.allow_unverified: true")
    }

    /// How long each server may take to let us in.
    var patience: Duration {
        let seconds = options["connect_timeout"].flatMap { Int($0.reveal()) } ?? 0
        // libpq takes zero for "for ever".
        return .seconds(seconds > 0 ? min(seconds, 30) : 5)
    }

    var secrets: [Secret] { ["password", "sslpassword"].compactMap { options[$0] } }

    private static let unreadable = FleetError(
        .argument,
        "the fleet's url is not an address of PostgreSQL; write postgresql://USER@HOST/DATABASE?sslmode=verify-full, "
            + "and other signs than letters and digits of a password as %XX")

    /// libpq's own words are left out of the errors: they repeat the text with the password in it.
    private static func parsed(_ text: String, _ pq: inlet_pq) throws(FleetError) -> [String: String] {
        var problem: UnsafeMutablePointer<CChar>?
        let list = pq.PQconninfoParse(text, &problem)
        defer {
            pq.PQconninfoFree(list)
            pq.PQfreemem(problem)
        }
        guard list != nil, !text.utf8.contains(0) else {
            throw unreadable
        }
        let options = values(of: list)
        guard options["service"] == nil else {
            throw FleetError(.argument, "the fleet's url names a service; name the host there instead")
        }
        return options
    }

    /// From variables such as PGHOST and PGSERVICE, and libpq's own defaults: they count, so they are checked too.
    private static func environment(_ pq: inlet_pq) -> [String: String] {
        let list = pq.PQconndefaults()
        defer { pq.PQconninfoFree(list) }
        return values(of: list)
    }

    /// Options without a value are left out; an empty one is none, as for libpq.
    private static func values(of list: UnsafeMutablePointer<PQconninfoOption>?) -> [String: String] {
        var (values, next) = ([String: String](), list)
        while let option = next?.pointee, let keyword = option.keyword {
            if let value = option.val, value.pointee != 0 { values[String(cString: keyword)] = String(cString: value) }
            next = next?.advanced(by: 1)
        }
        return values
    }

    private static func servers(_ options: [String: String]) throws(FleetError) -> [Server] {
        func list(_ option: String) -> [String?] {
            options[option].map {
                $0.split(separator: ",", omittingEmptySubsequences: false).map { $0.isEmpty ? nil : String($0) }
            } ?? []
        }
        let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(names.count, addresses.count, 1)
        guard [0, count].contains(names.count), [0, count].contains(addresses.count),
            [0, 1, count].contains(ports.count)
        else {
            throw FleetError(
                .argument, "the fleet's url has \(count) hosts; give as many addresses and ports, or one port")
        }
        return (0..<count).map { index in
            let port = ports.count > 1 ? ports[index] : ports.first ?? nil
            return Server(
                name: names.isEmpty ? nil : names[index], address: addresses.isEmpty ? nil : addresses[index],
                port: port ?? "5432")
        }
    }
}
