internal import CPostgres
internal import InletCore

/// Why a connection or a statement failed, before it is known what that means for a fleet.
enum PostgresFailure: Error {
    /// In the server's words.
    case refused(sqlstate: String, words: String, detail: String?)
    /// In libpq's words; the connection is gone, or was never made.
    case lost(String)
    case late(Duration)
    /// A fault of the caller.
    case misuse(String)

    /// From a result that is an error.
    init(_ result: OpaquePointer, _ pq: inlet_pq, _ connection: OpaquePointer) {
        func field(_ code: Int) -> String? {
            pq.PQresultErrorField(result, Int32(code)).map { String(cString: $0) }
        }
        if let sqlstate = field(INLET_PQ_SQLSTATE) {
            let words = field(INLET_PQ_MESSAGE) ?? ""
            self = .refused(sqlstate: sqlstate, words: words, detail: field(INLET_PQ_DETAIL))
        } else {
            self = .lost(pq.message(of: connection))
        }
    }

    /// From what libpq says of a connection that was not made, with verbose errors: before the server's words stands
    /// their SQLSTATE. Of several attempts the first counts: the others are those without TLS.
    init(connecting line: String) {
        let words = line.firstRange(of: " failed: ").map { String(line[$0.upperBound...]) } ?? line
        let parts = words.split(separator: ":", maxSplits: 2).map { $0.trimmingPrefix { $0 == " " } }
        let isState = parts.count == 3 && parts[1].utf8.count == 5
        guard isState, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }) else {
            self = .lost(words)
            return
        }
        self = .refused(sqlstate: String(parts[1]), words: String(parts[2]), detail: nil)
    }

    /// Deadlocks and conflicts of transactions: nothing was done, so that it may be done again.
    var isPassing: Bool {
        guard case .refused(let sqlstate, _, _) = self else { return false }
        return ["40P01", "40001"].contains(sqlstate)
    }

    /// The error for the caller of `sql`.
    func error(of sql: String, at server: String, hiding redactor: Redactor) -> FleetError {
        let function = Self.function(in: sql)
        let what = function ?? "a statement"
        switch self {
        case .refused(let sqlstate, let words, let detail):
            let said = Self.plain(words, redactor)
            // No schema, or one without this function.
            let isMissing = sqlstate == "3F000" || sqlstate == "42883" && function.map { words.contains($0) } == true
            let code = isMissing && function != nil ? FleetError.Code.schema : Self.code(sqlstate)
            let message =
                switch code {
                case .away, .refused: "\(server) refuses \(what): \(said) (\(sqlstate))"
                case .fault: "\(what) failed at \(server): \(said) (\(sqlstate))"
                case .schema where isMissing:
                    "\(server) has no fleet that this version knows: \(said) (\(sqlstate)); run inlet fleet init"
                default: said
                }
            return FleetError(code, message, detail: detail.map { Self.plain($0, redactor) }, function: function)
        case .lost(let words):
            return FleetError(.away, "\(server) went away: \(Self.plain(words, redactor))", function: function)
        case .late(let time):
            return FleetError(.away, "\(server) did not answer \(what) within \(time)", function: function)
        case .misuse(let words):
            return FleetError(.argument, "\(what): \(words)", function: function)
        }
    }

    /// The error of a connection that was not made.
    func error(connectingTo server: String, as user: String?, hiding redactor: Redactor) -> FleetError {
        switch self {
        case .refused(let sqlstate, let words, _):
            let (code, said) = (Self.code(sqlstate), Self.plain(words, redactor))
            // pgbouncer says so with a SQLSTATE of class 08.
            guard code == .refused || words.contains("authentication failed") else {
                return FleetError(code, "cannot reach \(server) (\(said), \(sqlstate))")
            }
            return FleetError(.refused, Self.refusal(server, user, said))
        case .lost(let words):
            let said = Self.plain(words, redactor)
            switch Self.code(saying: words) {
            case .untrusted where words.contains("does not support SSL"):
                return FleetError(.untrusted, "\(server) offers no TLS; turn it on there (ssl = on in postgresql.conf)")
            case .untrusted: return FleetError(.untrusted, Self.distrust(server, said))
            case .refused: return FleetError(.refused, Self.refusal(server, user, said))
            case .argument: return FleetError(.argument, "the fleet's url: \(said)")
            default: return FleetError(.away, "cannot reach \(server) (\(said))")
            }
        case .late(let time):
            return FleetError(.away, "cannot reach \(server) (no answer within \(time))")
        case .misuse(let words):
            return FleetError(.argument, words)
        }
    }

    private static func refusal(_ server: String, _ user: String?, _ said: String) -> String {
        let role = user.map { " " + DisplayText.escape($0.utf8) } ?? ""
        return "\(server) refuses the role\(role): \(said)"
    }

    private static func distrust(_ server: String, _ said: String) -> String {
        "\(server)'s certificate is not vouched for: \(said)"
    }

    static func code(_ sqlstate: String) -> FleetError.Code {
        switch sqlstate.prefix(2) {
        case "IN": FleetError.Code(rawValue: sqlstate) ?? .fault
        case "08", "53", "57": .away
        case "28": .refused
        // A role without rights; a database that is not there.
        case _ where sqlstate == "42501": .refused
        case _ where sqlstate == "3D000": .argument
        // Read-only; conflicts that did not end; time-outs for a lock and for an idle transaction.
        case _ where ["25006", "25P03", "40001", "40P01", "55P03"].contains(sqlstate): .away
        default: .fault
        }
    }

    /// libpq's own complaints have no SQLSTATE. They are in English unless a program asks for others, which Inlet never
    /// does.
    private static func code(saying words: String) -> FleetError.Code {
        func has(_ phrases: String...) -> Bool { phrases.contains { words.contains($0) } }
        // A server that wants another certificate of ours tells so by an alert.
        if has("alert", "no password supplied", "private key file", "could not read certificate", "channel binding") {
            return .refused
        }
        let doubts = has(
            "certificate verify failed", "root certificate file", "server certificate", "does not match host")
        if doubts || has("host name must be specified", "does not support SSL") { return .untrusted }
        return words.hasPrefix("invalid ") ? .argument : .away
    }

    /// Of the schema, the first that is called.
    static func function(in sql: String) -> String? {
        sql.firstRange(of: "v1_").map { start in
            String(sql[start.lowerBound...].prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
        }
    }

    /// One line without secrets. A server's words are data.
    private static func plain(_ words: String, _ redactor: Redactor) -> String {
        let text = redactor.redacted(words).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return String(DisplayText.escape(text.utf8).prefix(200))
    }
}
