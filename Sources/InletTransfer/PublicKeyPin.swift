internal import FoundationEssentials
internal import InletCore

/// The SHA-256 of a server's public key (RFC 7469, section 2.4: of its SubjectPublicKeyInfo), or several of which one
/// must be the server's.
package struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// As libcurl reads it: `sha256//BASE64`, joined by `;`.
    package let text: String

    private static let prefix = "sha256//"

    /// nil unless every part is `sha256//` and the base64 of 32 bytes. libcurl would take anything else for a file.
    package init?(_ text: String) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let isValid = parts.allSatisfy { part in
            part.hasPrefix(Self.prefix)
                && Data(base64Encoded: String(part.dropFirst(Self.prefix.count)))?.count == 32
        }
        guard isValid else { return nil }
        self.text = text
    }

    /// The pin of the certificate's key; nil when it cannot be read.
    package init?(certificatePEM text: String) {
        let lines = text.split(whereSeparator: \.isNewline).map { $0.filter { !$0.isWhitespace } }
        guard let start = lines.firstIndex(where: { $0.hasPrefix("-----BEGIN") }),
            let end = lines[start...].firstIndex(where: { $0.hasPrefix("-----END") }),
            let certificate = Data(base64Encoded: lines[(start + 1)..<end].joined()),
            let key = Self.publicKey(of: Array(certificate))
        else { return nil }
        self.text = Self.prefix + Data(Checksum.sha256(key).bytes).base64EncodedString()
    }

    package var description: String { text }
}

/// As much of an X.509 certificate (RFC 5280, section 4.1) in DER (X.690) as leads to its public key.
extension PublicKeyPin {
    private static let integer: UInt8 = 0x02
    private static let sequence: UInt8 = 0x30
    /// `[0] EXPLICIT Version`, left out by version 1.
    private static let version: UInt8 = 0xA0

    /// The SubjectPublicKeyInfo with its header, as hashed for pins; nil if it is not a certificate.
    static func publicKey(of certificate: [UInt8]) -> ArraySlice<UInt8>? {
        var outer = certificate[...]
        guard var whole = element(&outer, sequence)?.content, var signed = element(&whole, sequence)?.content
        else { return nil }
        if signed.first == version, element(&signed, version) == nil { return nil }
        // Serial number; then signature algorithm, issuer, validity and subject.
        guard element(&signed, integer) != nil else { return nil }
        for _ in 1...4 where element(&signed, sequence) == nil { return nil }
        return element(&signed, sequence)?.whole
    }

    /// Takes the next element off `bytes`; nil unless it has this tag and a definite length that fits.
    private static func element(
        _ bytes: inout ArraySlice<UInt8>, _ tag: UInt8
    ) -> (whole: ArraySlice<UInt8>, content: ArraySlice<UInt8>)? {
        let start = bytes
        guard bytes.popFirst() == tag, let first = bytes.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            let count = Int(first & 0x7F)
            guard (1...4).contains(count), bytes.count >= count else { return nil }
            length = bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            bytes = bytes.dropFirst(count)
        }
        guard bytes.count >= length else { return nil }
        let content = bytes.prefix(length)
        bytes = bytes.dropFirst(length)
        return (start[..<content.endIndex], content)
    }
}
