/// What `no_proxy` lists: hosts that are reached directly.
///
/// As curl reads it: `example.com` is that host and all below it, a leading dot changes nothing, `10.0.0.0/8` is a network,
/// `*` is everything. Besides, `host:port` is one port of a host, and `*.example.com` is the same as `example.com`.
package struct ProxyExceptions: Sendable, Hashable {
    private enum Rule: Sendable, Hashable {
        case all
        /// Lower case, without dots at its ends.
        case name(String)
        case network(IPAddress, bits: Int)
    }

    private struct Entry: Sendable, Hashable {
        var text: String
        var rule: Rule
        var port: UInt16?
    }

    private let entries: [Entry]

    package static let none = ProxyExceptions([])

    /// Each of `texts` may hold several, separated by commas or spaces. What cannot be meant is left out; `unreadable`
    /// finds it.
    package init(_ texts: [String]) { entries = texts.flatMap(Self.words).compactMap(Self.entry) }

    package var isEmpty: Bool { entries.isEmpty }

    /// The first entry of `text` that can match nothing; nil when there is none.
    package static func unreadable(in text: String) -> String? { words(text).first { entry($0) == nil } }

    /// The entry, as it was written, by which this host is reached directly; nil when none says so.
    ///
    /// - Parameter host: lower case; an IPv6 address without brackets.
    package func entry(for host: String, port: UInt16) -> String? {
        let address = IPAddress(host)
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return entries.first { entry in
            guard entry.port ?? port == port else { return false }
            return switch entry.rule {
            case .all: true
            case .name(let suffix): address == nil && (name == suffix || name.hasSuffix("." + suffix))
            case .network(let network, let bits): address?.isInside(network, bits: bits) ?? false
            }
        }?.text
    }

    private static func words(_ text: String) -> [String] {
        text.split { $0 == "," || $0.isWhitespace }.map(String.init)
    }

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return Entry(text: text, rule: .all) }
        if let slash = text.firstIndex(of: "/") {
            guard let network = address(text[..<slash]), let bits = Int(text[text.index(after: slash)...]),
                (0...network.bytes.count * 8).contains(bits)
            else { return nil }
            return Entry(text: text, rule: .network(network, bits: bits))
        }
        if let address = address(text[...]) { return Entry(text: text, rule: single(address)) }
        var (host, port) = (text[...], UInt16?.none)
        if let colon = text.lastIndex(of: ":") {
            guard let number = UInt16(text[text.index(after: colon)...]), number > 0 else { return nil }
            (host, port) = (text[..<colon], number)
        }
        if let address = address(host) { return Entry(text: text, rule: single(address), port: port) }
        if host.hasPrefix("*.") { host = host.dropFirst(2) }
        if host == "*" { return Entry(text: text, rule: .all, port: port) }
        while host.hasPrefix(".") { host = host.dropFirst() }
        if host.hasSuffix(".") { host = host.dropLast() }
        guard !host.isEmpty, !host.contains(where: { "*:/@[]".contains($0) }) else { return nil }
        return Entry(text: text, rule: .name(host.lowercased()), port: port)
    }

    /// IPv6 may stand in brackets.
    private static func address(_ text: Substring) -> IPAddress? {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        return IPAddress(String(isBracketed ? text.dropFirst().dropLast() : text))
    }

    private static func single(_ address: IPAddress) -> Rule { .network(address, bits: address.bytes.count * 8) }
}
