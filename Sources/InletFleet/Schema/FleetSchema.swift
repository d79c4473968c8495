internal import CFleetSchema
internal import InletCore

/// The schema of the fleet's database.
package enum FleetSchema {
    /// The newest version that this program knows.
    package static let version = 1

    /// One script, which makes the schema or brings an older one to `version`, in one transaction. Running it again
    /// changes nothing; a newer schema is refused with IN001. It is for `PostgresConnection.runScript` and for psql.
    package static let sql = String(cString: fleet_schema_sql())
}

/// The result of `inlet fleet init`, with the lines that a person needs next.
package struct FleetSchemaReport: Sendable {
    /// The schema's version before; nil where there was none.
    package var before: Int?
    package var after: Int
    /// SQL that makes a login role for the agents, with a new password. It is not run.
    package var loginRole: String
    /// Lines of pg_hba.conf that let this role in, over TLS only.
    package var hostRules: [String]
    /// Each with its remedy.
    package var warnings: [String]
}

extension FleetSchemaReport {
    private static let role = "inlet_station"

    init(before: Int?, database: String, hidesParameters: Bool) {
        (self.before, after) = (before, FleetSchema.version)
        loginRole = """
            CREATE ROLE \(Self.role) LOGIN PASSWORD '\(Base32.text([UInt8].unforeseeable(20)))'
                IN ROLE inlet_agent CONNECTION LIMIT 100;
            ALTER ROLE \(Self.role) SET statement_timeout = '15s';
            ALTER ROLE \(Self.role) SET lock_timeout = '5s';
            ALTER ROLE \(Self.role) SET idle_in_transaction_session_timeout = '15s';
            """
        hostRules = [
            "# samenet is every network that this server is in; name the agents' own network if you can",
            "hostssl \(Self.quoted(database)) \(Self.role) samenet scram-sha-256",
        ]
        warnings =
            hidesParameters
            ? []
            : [
                """
                the server's log may show agents' tokens; have a superuser run: \
                ALTER DATABASE \(Self.quoted(database)) SET log_parameter_max_length = 0
                """
            ]
    }

    private static func quoted(_ name: String) -> String {
        "\"\(name.replacing("\"", with: "\"\""))\""
    }
}

/// RFC 4648 in small letters, without padding: what people can read aloud and copy.
enum Base32 {
    private static let letters = Array("abcdefghijklmnopqrstuvwxyz234567")

    static func text(_ bytes: [UInt8]) -> String {
        var (text, bits, count) = ("", UInt32(0), 0)
        for byte in bytes {
            (bits, count) = (bits << 8 | UInt32(byte), count + 8)
            while count >= 5 {
                count -= 5
                text.append(letters[Int(bits >> count & 31)])
            }
        }
        if count > 0 { text.append(letters[Int(bits << (5 - count) & 31)]) }
        return text
    }
}
