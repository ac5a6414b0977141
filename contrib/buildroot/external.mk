include $(sort $(wildcard $(BR2_EXTERNAL_EMMCLAB_PATH)/*/*.mk))
