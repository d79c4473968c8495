internal import CExif
internal import InletCore

/// The dates in a block of EXIF.
enum ExifDates {
    /// A date and the fields that make it exact.
    private struct Field {
        var name: String
        var date: UInt32
        var offset: UInt32
        var subSeconds: UInt32
    }

    /// CIPA DC-008 4.6.5 and 4.6.6; the best first. The last one changes when a picture is edited.
    private static let fields = [
        Field(name: "DateTimeOriginal", date: 0x9003, offset: 0x9011, subSeconds: 0x9291),
        Field(name: "CreateDate", date: 0x9004, offset: 0x9012, subSeconds: 0x9292),
        Field(name: "DateTime", date: 0x0132, offset: 0x9010, subSeconds: 0x9290),
    ]

    /// The dates in `block`, which begins with TIFF's header; the best first, none when it is damaged.
    static func read(_ block: [UInt8]) -> [CaptureDate] {
        guard let data = ExifFields(block) else { return [] }
        return fields.compactMap { field in
            guard let text = data.text(field.date),
                let time = DateText.time(
                    text, subSeconds: data.text(field.subSeconds), offset: data.text(field.offset))
            else { return nil }
            return CaptureDate(time: time, origin: "EXIF \(field.name)")
        }
    }
}

/// The owner of what libexif made of a block.
private final class ExifFields {
    private let data: UnsafeMutablePointer<ExifData>

    /// nil when there is not enough memory.
    init?(_ block: [UInt8]) {
        let bytes = Array("Exif\0\0".utf8) + block
        guard let data = inlet_exif_parse(bytes, UInt32(bytes.count)) else { return nil }
        self.data = data
    }

    deinit { exif_data_unref(data) }

    /// The bytes of a text, up to its NUL; nil when it is not there.
    func text(_ tag: UInt32) -> [UInt8]? {
        guard let entry = inlet_exif_entry(data, ExifTag(tag))?.pointee, entry.format == EXIF_FORMAT_ASCII,
            let bytes = entry.data
        else { return nil }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(entry.size)).prefix { $0 != 0 })
    }
}
