package import InletCore
package import InletLinux
internal import SystemPackage

/// When a picture was taken or a recording began, read from the file itself.
///
/// Reads EXIF in JPEG, PNG, WebP, TIFF and the raw formats built on it (DNG, CR2, NEF, ARW, ORF, RW2), in RAF, in HEIF
/// (HEIC, AVIF) and CR3. Reads the creation time of QuickTime and MP4. The first bytes decide the format, not the name.
/// At most `BoundedBytes.maximumBytes` are read, from a file of any size. Dates that no camera can have written are
/// skipped.
package struct CaptureDate: Sendable, Hashable {
    package let time: CaptureTime
    /// The field it comes from, for people: `EXIF DateTimeOriginal`.
    package let origin: String

    /// The file's date; nil if it has none, is damaged or of another format. Blocks.
    ///
    /// - Parameter now: Later dates count as future.
    /// - Throws: Only if the file cannot be read.
    package static func read(from source: SourceFile, at now: WallTime = .now) throws(SystemError) -> CaptureDate? {
        try read(BoundedBytes(source), at: now)
    }

    static func read(_ bytes: BoundedBytes, at now: WallTime) throws(SystemError) -> CaptureDate? {
        let head = try bytes.read(upTo: 16, at: 0)
        return try candidates(head, bytes).first { $0.time.isPlausible(at: now) }
    }

    /// The dates of a file that begins with `head`, the best first.
    private static func candidates(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        if BoxType.opensFile(head) { return try MovieDates.read(bytes) }
        return try ExifBlock.find(head, bytes)?.dates ?? []
    }
}

extension Captured {
    /// The result of a reading.
    package init(_ date: CaptureDate?) {
        if let date { self = .at(date.time, origin: date.origin) } else { self = .unknown }
    }
}
