internal import InletCore
internal import InletLinux
internal import SystemPackage

// What the kernel's refusals mean in a folder that is written to: a destination's, or one for results.

extension DeliveryError {
    /// A folder that is full or not writable is out of order for every file: that is an outage, not an attempt.
    static func unwritable(_ error: SystemError) -> DeliveryError {
        if error.code == .canceled { return DeliveryError(.cancelled, .cancelled, "\(error)") }
        if error.isShortage { return DeliveryError(.outage(after: nil), .outOfResources, "\(error)") }
        if error.isFull { return DeliveryError(.outage(after: nil), .destinationFull, "\(error)") }
        if error.code == .fileNameTooLong { return DeliveryError(.giveUp, .nameTooLong, "\(error)") }
        let isOutage = error.isPermission || error.code == .readOnlyFileSystem || error.code == .ioError
        return DeliveryError(
            isOutage ? .outage(after: nil) : .retry(after: nil), .destinationUnwritable, "\(error)")
    }
}

extension Verification {
    /// What an error says that came with one file, while the folder itself is there: nothing about the other files.
    init(_ error: SystemError) throws(DeliveryError) {
        // A bad sector loses what is on it, and no more.
        if error.isDeviceFault {
            self = .differs("cannot be read: \(error)")
        } else if error.isPermission || error.isLinked {
            // What a symlink leads to is not what was delivered, nor does it say that this is gone.
            self = .cannotTell("\(error)")
        } else if error.isMissing {
            // It went between the look and the read.
            self = .missing("\(error)")
        } else if error.isNotRegular {
            self = .differs("\(error)")
        } else {
            if error.code == .canceled { throw DeliveryError(.cancelled, .cancelled, "\(error)") }
            throw DeliveryError(
                .retry(after: nil), error.isShortage ? .outOfResources : .destinationUnwritable, "\(error)")
        }
    }
}
