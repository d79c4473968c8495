/// An internet address as bytes, for comparisons; not for connecting.
package struct IPAddress: Sendable, Hashable {
    /// 4 or 16 bytes; an IPv4 address in IPv6 form (`::ffff:1.2.3.4`) counts as IPv4.
    package let bytes: [UInt8]

    /// nil unless it is an address: `127.0.0.1`, `::1`, `fe80::1%eth0`; without brackets.
    package init?(_ text: String) {
        let text = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        guard let found = text.contains(":") ? Self.six(text) : Self.four(text) else { return nil }
        let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
        bytes = found.count == 16 && Array(found.prefix(12)) == mapped ? Array(found.suffix(4)) : found
    }

    /// Whether only this machine can be at the other end.
    package var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// Whether it means all addresses of this machine.
    package var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    /// One customer's network: an IPv4 address, or the /64 of an IPv6 address, in which anyone has as many addresses as
    /// they like.
    package var network: [UInt8] { bytes.count == 4 ? bytes : Array(bytes.prefix(8)) }

    /// Whether the first `bits` bits equal those of `network`.
    package func isInside(_ network: IPAddress, bits: Int) -> Bool {
        guard bytes.count == network.bytes.count else { return false }
        for (index, (own, other)) in zip(bytes, network.bytes).enumerated() {
            let count = min(max(bits - index * 8, 0), 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> count)
            if own & mask != other & mask { return false }
        }
        return true
    }

    private static func four(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let numbers = parts.compactMap { part -> UInt8? in
            // Some parsers read a leading zero as octal.
            guard part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), part.count == 1 || part.first != "0" else {
                return nil
            }
            return UInt8(part)
        }
        return numbers.count == 4 ? numbers : nil
    }

    private static func six(_ text: Substring) -> [UInt8]? {
        guard let gap = text.firstRange(of: "::") else {
            return groups(text).flatMap { $0.count == 16 ? $0 : nil }
        }
        guard let front = groups(text[..<gap.lowerBound]), let back = groups(text[gap.upperBound...]),
            front.count + back.count <= 14
        else { return nil }
        return front + [UInt8](repeating: 0, count: 16 - front.count - back.count) + back
    }

    /// `fe80:0:1`, possibly ending with an IPv4 address; empty for an empty text.
    private static func groups(_ text: Substring) -> [UInt8]? {
        if text.isEmpty { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if part.contains("."), index == parts.count - 1, let end = four(part) {
                bytes += end
            } else if (1...4).contains(part.count), part.allSatisfy(\.isHexDigit), let group = UInt16(part, radix: 16) {
                bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
            } else {
                return nil
            }
        }
        return bytes
    }
}
