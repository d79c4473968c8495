/// What is mounted, by its device number: a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
package enum MountSource {
    /// The source of the first mount with the device number `major:minor`, e.g. `/dev/sdb1`; nil when none has it. Total on
    /// any bytes.
    package static func find(_ device: String, in mountinfo: [UInt8]) -> String? {
        for line in mountinfo.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "))
            guard fields.count > 2, fields[2].elementsEqual(device.utf8),
                let dash = fields.firstIndex(where: { $0.elementsEqual("-".utf8) }), dash + 2 < fields.count
            else { continue }
            return String(decoding: unescaped(fields[dash + 2]), as: UTF8.self)
        }
        return nil
    }

    /// Undoes `\040` and its like: three octal digits.
    static func unescaped(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3).map { Int($0) - 0x30 }
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ (0...7).contains($0) }),
                let value = UInt8(exactly: digits.reduce(0) { $0 * 8 + $1 })
            {
                result.append(value)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
