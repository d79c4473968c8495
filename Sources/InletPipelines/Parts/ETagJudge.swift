internal import InletCore

/// Decides what a part's ETag says about the bytes that arrived.
///
/// A foreign value once may be damage on the way: the part is sent again. Another foreign value is damage for certain; the
/// same one again means that this store's ETags are not MD5.
struct ETagJudge: Sendable {
    enum Judgement: Sendable, Equatable {
        case proved
        case sendAgain
        case corrupted
        case notMD5
    }

    private var foreign: String?

    init() {}

    /// - Parameters:
    ///   - etag: as received.
    ///   - md5: of what was read from the file; nil accepts any tag (`verify: size`).
    mutating func judge(_ etag: String, md5: Digest?) -> Judgement { judge(etag, against: md5) }

    /// - Parameter wanted: any checksum that the store has to name, in hexadecimal.
    mutating func judge(_ said: String, against wanted: Digest?) -> Judgement {
        guard let wanted else { return .proved }
        let bare = Self.bare(said)
        if bare == wanted.hex { return .proved }
        guard let foreign else {
            self.foreign = bare
            return .sendAgain
        }
        return foreign == bare ? .notMD5 : .corrupted
    }

    /// The tag without quotes and weakness mark, its letters in lower case (RFC 9110 8.8.3).
    static func bare(_ etag: String) -> String {
        let strong = etag.utf8.dropFirst(etag.hasPrefix("W/") ? 2 : 0)
        // Asked several times of every small file: one allocation.
        return String(unsafeUninitializedCapacity: strong.count) { room in
            var count = 0
            for byte in strong where byte != UInt8(ascii: "\"") {
                room[count] = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
                count += 1
            }
            return count
        }
    }
}
