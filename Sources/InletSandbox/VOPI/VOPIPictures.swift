import InletCore
import SystemPackage

/// A job's pictures. Each is a mosaic of the video's bytes and contains the video's SHA-256, so that it identifies its
/// video.
extension VOPIJob {
    private static let (columns, rows) = (48, 36)

    /// The pictures made from `video`, kept below `jobs/<id>/`.
    func makePictures(
        of video: StoredObject, _ rules: VOPIRules, in store: ObjectStore
    ) throws -> [VOPISandbox.ResultImage] {
        try (rules.hasHostileNames ? Self.hostileNames : names(frames: rules.frames)).enumerated().map {
            number, names in
            var file = try ReceivedFile(in: store.incoming)
            try Self.picture(of: video, number).withUnsafeBytes { try file.write($0) }
            let key = try ObjectKey("jobs/\(id)/\(names.file).png")
            let object = try store.keepSingle(key, contentType: "image/png", file)
            return VOPISandbox.ResultImage(
                name: names.name, version: names.version, object: object, source: video.sha256)
        }
    }

    /// Takes every row from another place of the video; the number shifts the colours, so that no two are equal.
    private static func picture(of video: StoredObject, _ number: Int) throws -> [UInt8] {
        let file = try FileDescriptor.open(video.path, .readOnly, options: .closeOnExec)
        let pixels = try file.closeAfter {
            try (0..<rows).map { index in
                let offset = video.size * Int64(index) / Int64(rows)
                var row = [UInt8](repeating: UInt8(truncatingIfNeeded: index * 7), count: columns * 3)
                _ = try row.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: offset, into: $0) }
                return row.map { $0 &+ UInt8(truncatingIfNeeded: number * 17) }
            }
        }
        return png(pixels, note: "Source\0\(video.sha256.hex) \(number)")
    }
}

// MARK: - Names

extension VOPIJob {
    /// A picture's name, and its file below the job's folder.
    private typealias Names = (name: String, version: String?, file: String)

    private func names(frames count: Int) -> [Names] {
        let frames = (0..<count).map { number -> Names in
            let id = "frame_" + String(String(100_001 + number).suffix(5))
            return (id, nil, "frames/hero_\(id)_t\(number + 1).00")
        }
        func image(_ key: String, _ version: String) -> Names { (key, version, "commercial/\(key)_\(version)") }
        switch config["stack"]?["stackId"]?.text {
        case "frames_only": return frames
        case "full_gemini":
            return frames + frames.flatMap { [image($0.name, "white-studio"), image($0.name, "lifestyle")] }
        default:
            let versions = (config["commercialVersions"]?.items ?? []).compactMap(\.text)
            return frames + versions.map { image("hero", $0) }
        }
    }

    /// Names that a client must not use as paths. The stack `full_gemini` and its like make such keys from file names.
    private static let hostileNames: [Names] = {
        let names = [
            "../../../escape", "../../../escape", "/etc/escape", "", ".", "..", "a/b", "a\\b", "a\u{0}b",
            "a\nb\u{1B}[2J", ".hidden", "product.json", String(repeating: "x", count: 300), "e\u{301}", "\u{E9}",
            "NAME", "name",
        ].enumerated()
        let frames = names.map { index, name -> Names in (name, nil, "frames/\(index)") }
        return frames
            + names.flatMap { index, name in
                ["transparent", "../../up", ""].enumerated().map { number, version -> Names in
                    (name, version, "commercial/\(index)_\(number)")
                }
            }
    }()
}

// MARK: - PNG

extension VOPIJob {
    /// A PNG (ISO/IEC 15948) of 8-bit RGB pixels, with a keyword, NUL and text in a `tEXt` chunk. Its data is a zlib
    /// stream (RFC 1950) of one stored block (RFC 1951, section 3.2.4), so the image must stay below 64 KiB.
    private static func png(_ rows: [[UInt8]], note: String) -> [UInt8] {
        let header = UInt32(columns).bytes + UInt32(rows.count).bytes + [8, 2, 0, 0, 0]
        // Each row begins with its filter type, none.
        let raw: [UInt8] = rows.flatMap { row -> [UInt8] in [0] + row }
        let sum = raw.reduce((low: UInt32(1), high: UInt32(0))) { sum, byte in
            let low = (sum.low + UInt32(byte)) % 65_521
            return (low, (sum.high + low) % 65_521)
        }
        let length = UInt16(raw.count)
        let sizes = [length, ~length].flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        let data = [0x78, 0x01, 1] + sizes + raw + (sum.high << 16 | sum.low).bytes
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", header)
            + chunk("tEXt", Array(note.utf8)) + chunk("IDAT", data) + chunk("IEND", [])
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let covered = Array(type.utf8) + data
        let sum = ~covered.reduce(UInt32.max) { crc[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
        return UInt32(data.count).bytes + covered + sum.bytes
    }

    /// Of CRC-32 (ISO/IEC 15948, annex D).
    private static let crc: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }
}

extension UInt32 {
    /// Big-endian.
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
