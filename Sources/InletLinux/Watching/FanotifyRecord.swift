/// What the kernel calls a folder that it does not name by path (`struct file_handle`, open_by_handle_at(2)): stays the same
/// while the folder is renamed, and does not come again once it is gone.
package struct FileHandle: Sendable, Hashable {
    /// The file system's `f_fsid`, as statfs(2) has it.
    package var fileSystem: UInt64
    /// Which form the bytes have; each file system has its own.
    package var type: Int32
    package var bytes: [UInt8]

    package init(fileSystem: UInt64, type: Int32, bytes: [UInt8]) {
        self.fileSystem = fileSystem
        self.type = type
        self.bytes = bytes
    }
}

/// One record that the kernel wrote to a fanotify descriptor (fanotify(7)).
package struct FanotifyRecord: Sendable, Hashable {
    /// A name in a folder; `.` is the folder itself.
    package struct Place: Sendable, Hashable {
        package var directory: FileHandle
        package var name: [UInt8]

        package init(directory: FileHandle, name: [UInt8]) {
            self.directory = directory
            self.name = name
        }
    }

    /// The `FAN_*` bits that inotify has too, under the same values. Those of several records about one name may come as one,
    /// in which the order of what happened is lost.
    package var mask: InotifyRecord.Mask
    /// nil: the name that the record is about could not be read, so that it stands for anything.
    package var place: Place?
    /// Where a renamed file or folder went from `place`.
    package var target: Place?

    package init(mask: InotifyRecord.Mask, place: Place? = nil, target: Place? = nil) {
        self.mask = mask
        self.place = place
        self.target = target
    }

    /// The record says that others were lost.
    package var isOverflow: Bool { mask.contains(.overflow) }

    /// What inotify would have said: a rename is two records, with a `cookie` that they share.
    package func parts(cookie: UInt32) -> [(place: Place, record: InotifyRecord)] {
        guard let place else { return [] }
        guard let target else { return [(place, InotifyRecord(watch: -1, mask: mask, name: place.name))] }
        let kind = mask.intersection(.isDirectory)
        return [
            (place, InotifyRecord(watch: -1, mask: kind.union(.movedFrom), cookie: cookie, name: place.name)),
            (target, InotifyRecord(watch: -1, mask: kind.union(.movedTo), cookie: cookie, name: target.name)),
        ]
    }
}

extension Fanotify {
    /// Reads `struct fanotify_event_metadata` records with their `fanotify_event_info_fid`. Total on any bytes: a record that
    /// is cut short, or of another version, ends the list; what a record adds that is not known here is passed over.
    package static func parse(_ bytes: UnsafeRawBufferPointer) -> [FanotifyRecord] {
        var records: [FanotifyRecord] = []
        var rest = bytes[...]
        while rest.count >= metadataLength {
            let record = UnsafeRawBufferPointer(rebasing: rest)
            let length = Int(record.number(at: 0) as UInt32)
            let start = Int(record.number(at: 6) as UInt16)
            guard record[4] == metadataVersion, length <= record.count, start >= metadataLength, start <= length else {
                break
            }
            let mask: UInt64 = record.number(at: 8)
            var found = FanotifyRecord(mask: .init(rawValue: UInt32(truncatingIfNeeded: mask)))
            addPlaces(to: &found, UnsafeRawBufferPointer(rebasing: record[start..<length]))
            records.append(found)
            rest = rest.dropFirst(length)
        }
        return records
    }

    private static let metadataLength = 24
    private static let metadataVersion: UInt8 = 3

    /// `FAN_EVENT_INFO_TYPE_*` of a folder and a name in it.
    private enum Info {
        static let name: UInt8 = 2
        static let oldName: UInt8 = 10
        static let newName: UInt8 = 12
    }

    private static func addPlaces(to record: inout FanotifyRecord, _ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while rest.count >= 4 {
            let info = UnsafeRawBufferPointer(rebasing: rest)
            let length = Int(info.number(at: 2) as UInt16)
            guard length >= 4, length <= info.count else { return }
            let body = UnsafeRawBufferPointer(rebasing: info[4..<length])
            switch info[0] {
            case Info.name, Info.oldName: record.place = place(body)
            case Info.newName: record.target = place(body)
            default: break
            }
            rest = rest.dropFirst(length)
        }
    }

    /// The file system's number, length and type of the handle, the handle, and a name that ends with NUL.
    private static func place(_ bytes: UnsafeRawBufferPointer) -> FanotifyRecord.Place? {
        let header = 16
        guard bytes.count >= header else { return nil }
        let length = Int(bytes.number(at: 8) as UInt32)
        guard length <= bytes.count - header else { return nil }
        let handle = FileHandle(
            fileSystem: bytes.number(at: 0), type: bytes.number(at: 12), bytes: Array(bytes[header..<(header + length)])
        )
        let name = bytes[(header + length)...].prefix { $0 != 0 }
        return name.isEmpty ? nil : FanotifyRecord.Place(directory: handle, name: Array(name))
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        loadUnaligned(fromByteOffset: offset, as: Number.self)
    }
}
