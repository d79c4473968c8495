/// A JPEG of 64 bytes that holds nothing but its date.
package enum DatedPicture {
    /// - Parameter date: as EXIF writes it, `2024:05:06 07:08:09`; stored as its `DateTime`, the camera's local time.
    package static func jpeg(_ date: String) -> [UInt8] {
        let entry: [UInt8] = [0x32, 0x01, 2, 0, 20, 0, 0, 0, 26, 0, 0, 0]
        let block = Array("II*\0".utf8) + [8, 0, 0, 0, 1, 0] + entry + [0, 0, 0, 0] + Array(date.utf8) + [0]
        return [0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(truncatingIfNeeded: block.count + 8)] + Array("Exif\0\0".utf8) + block
            + [0xFF, 0xD9]
    }
}
