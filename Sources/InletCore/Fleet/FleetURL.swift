package import SystemPackage

/// An address of PostgreSQL, as far as Inlet has to know it before libpq reads it. Its passwords are never shown, and a
/// confined agent must be allowed to read its files.
///
/// Both forms of libpq: `postgresql://USER:PASSWORD@HOST/DATABASE?KEY=VALUE&…` and `KEY=VALUE KEY='VALUE' …`.
package struct FleetURL: Sendable, Equatable {
    private var values: [String: String] = [:]

    package static let example = "postgresql://station@db.lan/inlet?sslmode=verify-full"

    /// - Throws: an error that quotes nothing of the text.
    package init(_ text: String) throws(PatternError) {
        if let scheme = ["postgresql://", "postgres://"].first(where: { text.hasPrefix($0) }) {
            read(url: text.dropFirst(scheme.count))
        } else if let equals = text.firstIndex(of: "="), !text[..<equals].contains("://") {
            try read(pairs: text[...])
        } else {
            throw PatternError(message: "is not an address of PostgreSQL; write for example \(Self.example)")
        }
    }

    /// The value of a parameter; nil where it is not set.
    package subscript(_ name: String) -> String? { values[name] }

    /// Everything in it that must not be shown.
    package var secrets: [Secret] {
        ["password", "sslpassword"].compactMap { values[$0] }.filter { !$0.isEmpty }.map { Secret($0) }
    }

    /// The files that libpq reads because of it. Relative paths depend on where the agent starts, and are left out.
    package var files: [FilePath] {
        ["sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile"].compactMap { values[$0] }
            .map { FilePath($0) }.filter(\.isAbsolute)
    }

    // MARK: - URLs

    private mutating func read(url: Substring) {
        var rest = url
        // A login ends at the first '@' before the first '/', as libpq reads it.
        if let mark = rest.firstIndex(where: { $0 == "@" || $0 == "/" }), rest[mark] == "@" {
            let login = rest[..<mark]
            let colon = login.firstIndex(of: ":")
            set("user", login[..<(colon ?? login.endIndex)])
            if let colon { set("password", login[login.index(after: colon)...]) }
            rest = rest[mark...].dropFirst()
        }
        let query = rest.firstIndex(of: "?")
        let place = rest[..<(query ?? rest.endIndex)]
        let slash = place.firstIndex(of: "/")
        set("host", place[..<(slash ?? place.endIndex)])
        if let slash { set("dbname", place[slash...].dropFirst()) }
        guard let query else { return }
        for pair in rest[query...].dropFirst().split(separator: "&") {
            guard let equals = pair.firstIndex(of: "=") else { continue }
            set(Self.decoded(pair[..<equals]), pair[equals...].dropFirst())
        }
    }

    private mutating func set(_ name: String, _ value: Substring) {
        if !value.isEmpty { values[name] = Self.decoded(value) }
    }

    private static func decoded(_ text: Substring) -> String {
        var (bytes, rest) = ([UInt8](), text.utf8[...])
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: - Pairs

    private mutating func read(pairs text: Substring) throws(PatternError) {
        var rest = text.drop(while: \.isWhitespace)
        while !rest.isEmpty {
            let name = rest.prefix { $0 != "=" && !$0.isWhitespace }
            rest = rest[name.endIndex...].drop(while: \.isWhitespace)
            guard !name.isEmpty, rest.first == "=" else {
                throw PatternError(message: "must be pairs of KEY=VALUE, or an address such as \(Self.example)")
            }
            rest = rest.dropFirst().drop(while: \.isWhitespace)
            values[String(name)] = try Self.value(&rest)
            rest = rest.drop(while: \.isWhitespace)
        }
    }

    /// The value at the start of `rest`, plain or in single quotes; a backslash takes the next character as it is.
    private static func value(_ rest: inout Substring) throws(PatternError) -> String {
        let isQuoted = rest.first == "'"
        if isQuoted { rest = rest.dropFirst() }
        var value = ""
        while let character = rest.first {
            if isQuoted ? character == "'" : character.isWhitespace { break }
            rest = rest.dropFirst()
            if character == "\\", let next = rest.popFirst() { value.append(next) } else { value.append(character) }
        }
        if isQuoted, rest.popFirst() == nil { throw PatternError(message: "has a quote that is not closed") }
        return value
    }
}
