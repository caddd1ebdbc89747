// linux/kfd_ioctl.h includes drm/drm.h, which only libdrm's development package has, and uses nothing of it but these
// types.
#pragma once
#include <linux/types.h>
#include <sys/ioctl.h>
