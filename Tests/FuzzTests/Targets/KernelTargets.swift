import InletCore
import SystemPackage

@testable import InletLinux

extension FuzzTarget {
    /// What the kernel writes, with names in it that anyone may have given.
    static let kernel = [
        FuzzTarget("inotify") { bytes throws(Broken) in
            let records = Inotify.parse(bytes)
            try promise(records.count * 16 <= bytes.count, "\(records.count) records in \(bytes.count) bytes")
            let names = records.reduce(0) { $0 + $1.nameBytes.count }
            try promise(names + records.count * 16 <= bytes.count, "names beyond the buffer")
            try promise(records.allSatisfy { !$0.nameBytes.contains(0) }, "a NUL in a name")
        },
        FuzzTarget("fanotify") { bytes throws(Broken) in
            let records = Fanotify.parse(bytes)
            try promise(records.count * 24 <= bytes.count, "\(records.count) records in \(bytes.count) bytes")
            for record in records {
                for place in [record.place, record.target].compactMap(\.self) {
                    try promise(!place.name.isEmpty && !place.name.contains(0), "a name that is none")
                    try promise(place.name.count + place.directory.bytes.count <= bytes.count, "more than came")
                }
                let parts = record.parts(cookie: 1)
                try promise(parts.count <= 2, "more than the two halves of a rename")
            }
        },
        FuzzTarget("mounts") { bytes throws(Broken) in
            let table = MountTable(parsing: Array(bytes))
            for path in ["/", "/srv", "/srv/drop/a", "/media/x y"] as [FilePath] {
                guard let mount = table.mount(of: path) else { continue }
                try promise(path.starts(with: mount.point), "\(mount.point.display) does not hold \(path.display)")
            }
            _ = table.below("/srv")
        },
    ]

    /// What a confined agent and the process that starts its programs say to each other: either may have been taken over.
    static let neighbours = [
        FuzzTarget("host") { bytes throws(Broken) in
            guard let message = HostMessage(body: Array(bytes)) else { return }
            try promise(message.size == bytes.count, "\(message.size) bytes of \(bytes.count)")
            if let request = HostRequest(message)?.message {
                try promise(
                    HostRequest(request)?.message == request, "a request that is another one when it is repeated")
            }
            if let (number, answer) = HostAnswer.parse(message) {
                let said = answer.message(to: number)
                let repeated = HostAnswer.parse(said)
                try promise(repeated?.number == number, "an answer to another request")
                try promise(
                    repeated?.answer.message(to: number) == said, "an answer that is another one when it is repeated")
            }
        }
    ]
}
