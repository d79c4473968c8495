extension Metric {
    /// What it says, in one line.
    var help: String { queueHelp ?? placeHelp ?? processHelp }

    private var queueHelp: String? {
        switch self {
        case .files: "Files that the journal knows, by state."
        case .fileBytes: "Bytes of the files that the journal knows, by state."
        case .filesEnded: "Files that are done with since the start, by the route that took them and how they ended."
        case .filesIgnored: "Files of watched folders that no route takes, since each folder began to be watched."
        case .queueWaiting: "Deliveries that wait for a worker or for their time."
        case .oldestWaiting: "How long the file has waited that has waited longest, since it was admitted."
        case .deliveriesOpen: "Deliveries that have not ended, by destination and where they are."
        case .deliveries: "Deliveries that ended since the start while they were tried, or without need to be."
        case .deliveredBytes: "Bytes of the files that were delivered since the start."
        case .deliveryDuration: "How long the attempts took that delivered a file."
        case .retries: "Attempts that failed and are made again."
        case .bytesInFlight: "Bytes of the files that are being sent now, whole."
        case .resuming: "Files that waited at the start and have not been tried since."
        case .resumed: "What became of the files that waited at the start."
        case .recovered: "Deliveries that an earlier process was at when it ended, and that were freed at the start."
        case .continued: "Attempts that went on from where an earlier process was."
        default: nil
        }
    }

    private var placeHelp: String? {
        switch self {
        case .destinationUp: "1, or 0 while a destination is down, refuses its credentials, or has not answered yet."
        case .destinationState: "1 for the state that a destination's breaker is in, 0 for the others."
        case .destinationPaused: "1 while a person has paused the destination."
        case .limit: "The limit that holds; * is for all destinations together. None where nothing is limited."
        case .rootUp: "1 while a watched folder is listed or watched, 0 while it is missing, paused, or cannot be read."
        case .settling: "Files that are not known to be complete yet."
        case .watches: "Watches of inotify that are held; with fanotify few stand for all folders."
        case .polled: "Folders that are listed again and again because nothing tells of them."
        case .watchLimit: "Folders of which the kernel tells one user at most (fs.inotify.max_user_watches)."
        case .overflows: "Times that the kernel lost news of a watched folder, which was then listed anew."
        default: nil
        }
    }

    private var processHelp: String {
        switch self {
        case .startTime: "When the agent started, in seconds since 1970."
        case .journalFailing: "1 while the journal cannot be written, and nothing new is taken or sent."
        case .journalWrites: "How long changes took to be on the disk; many files share one."
        case .residentMemory: "Memory that is in RAM, in bytes."
        case .openDescriptors: "Descriptors that are open."
        case .processorTime: "Processor time used, in seconds."
        default: "The version that runs, as a label."
        }
    }
}
