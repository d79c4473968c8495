internal import InletCore
internal import SystemPackage

private let rows = EventTable.rows

/// Events of cards and disks that come and go.
extension AgentEvent {
    static func volumeAdded(root: FilePath, volume: String, waiting: Int) -> Self {
        say(rows.volumeAdded, root, volume, waiting)
    }

    static func volumeUnknown(path: FilePath, volume: String, files: Int) -> Self {
        say(rows.volumeUnknown, path, volume, files)
    }

    static func volumeRemoved(root: FilePath, volume: String) -> Self { say(rows.volumeRemoved, root, volume) }

    static func cardLabelled(volume: String, labels: String, by: String) -> Self {
        say(rows.cardLabelled, volume, labels, by)
    }

    static func cardOthersLeft(volume: String, files: Int, by: String) -> Self {
        say(rows.cardOthersLeft, volume, files, by)
    }

    static func cardResent(volume: String, files: Int, by: String) -> Self { say(rows.cardResent, volume, files, by) }

    static func cardEjected(volume: String, result: String, by: String) -> Self {
        say(rows.cardEjected, volume, result, by)
    }

    static func cardNotEjected(volume: String, reason: String) -> Self { say(rows.cardNotEjected, volume, reason) }

    static func reportWritten(volume: String, destination: String, file: FilePath) -> Self {
        say(rows.reportWritten, volume, destination, file)
    }

    static func reportFailed(volume: String, destination: String, reason: String) -> Self {
        say(rows.reportFailed, volume, destination, reason)
    }
}
