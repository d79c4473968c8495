/// One entry for systemd's journal, as its native protocol has it (systemd.io/JOURNAL_NATIVE_PROTOCOL).
package struct JournalMessage: Sendable {
    /// What goes over the socket.
    package private(set) var bytes: [UInt8] = []

    package init() { bytes.reserveCapacity(512) }

    /// Adds a field. `name` is upper-case letters, digits and `_`, and begins with a letter: other fields are dropped by the
    /// journal. A value may hold any bytes; with a line break in it, it goes with its length before it.
    package mutating func add(_ name: String, _ value: some Collection<UInt8>) {
        bytes += name.utf8
        if value.contains(UInt8(ascii: "\n")) {
            bytes.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.count).littleEndian) { bytes += $0 }
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value
        bytes.append(UInt8(ascii: "\n"))
    }

    package mutating func add(_ name: String, _ value: String) { add(name, value.utf8) }

    /// `job` as the name of a field: `INLET_JOB`; nothing but what the journal takes is left of it.
    package static func fieldName(_ prefix: String, _ name: String) -> String {
        let letters = name.uppercased().utf8.map { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) ? byte : UInt8(ascii: "_")
        }
        return String((prefix + String(decoding: letters, as: UTF8.self)).prefix(64))
    }
}
