/// An address literal; an IPv4 address inside of IPv6 (`::ffff:a.b.c.d`) counts as what it is.
package struct IPAddress: Sendable, Hashable {
    /// 4 or 16.
    package let bytes: [UInt8]

    /// nil for what is a name. IPv6 may stand in brackets.
    package init?(_ text: String) {
        var bare = text[...]
        if bare.hasPrefix("["), bare.hasSuffix("]") { bare = bare.dropFirst().dropLast() }
        guard let bytes = bare.contains(":") ? Self.version6(bare) : Self.version4(bare) else { return nil }
        let isMapped = bytes.count == 16 && bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10...11] == [0xFF, 0xFF]
        self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
    }

    /// Whether it leads to this machine: 127.0.0.0/8, ::1, and the unspecified addresses, which connect to it too.
    package var isLoopback: Bool {
        if bytes.count == 4 { return bytes[0] == 127 || bytes[0] == 0 }
        return bytes.dropLast().allSatisfy { $0 == 0 } && (bytes.last ?? 2) <= 1
    }

    /// Whether the first `bits` bits are those of `network`.
    package func isInside(_ network: IPAddress, bits: Int) -> Bool {
        guard bytes.count == network.bytes.count else { return false }
        for (index, (own, other)) in zip(bytes, network.bytes).enumerated() {
            let count = min(max(bits - index * 8, 0), 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> count)
            if own & mask != other & mask { return false }
        }
        return true
    }

    private static func version4(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let bytes = parts.compactMap { part in
            part.count <= 3 && part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt8(part) : nil
        }
        return parts.count == 4 && bytes.count == 4 ? bytes : nil
    }

    /// RFC 4291, section 2.2.
    private static func version6(_ text: Substring) -> [UInt8]? {
        guard let gap = text.firstRange(of: "::") else {
            let whole = groups(text)
            return whole?.count == 16 ? whole : nil
        }
        guard let head = groups(text[..<gap.lowerBound]), let tail = groups(text[gap.upperBound...]),
            head.count + tail.count <= 14
        else { return nil }
        return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
    }

    /// Groups of up to four hexadecimal digits; the last may be an IPv4 address.
    private static func groups(_ text: Substring) -> [UInt8]? {
        if text.isEmpty { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains("."), let address = version4(part) {
                bytes += address
            } else if (1...4).contains(part.utf8.count), let group = UInt16(part, radix: 16) {
                bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
            } else {
                return nil
            }
        }
        return bytes
    }
}
